package stdio

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// TestLastAnswers: the end of the input does not take away what was asked.
func TestLastAnswers(t *testing.T) {
	tests := []struct {
		name  string
		after time.Duration // of the answer; 0: none comes
		ctx   time.Duration // until the context ends
		took  time.Duration
		wants string
	}{
		{"in time", 5 * time.Second, time.Hour, 5 * time.Second, `"late"`},
		{"never", 0, time.Hour, lastAnswers, `session_ended`},
		{"cut short", 0, time.Second, time.Second, `session_ended`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, &fakeServer{init: version})
				go r.read()
				r.write(initLine, hang)
				r.wants(`"i"`)
				synctest.Wait()
				began := time.Now()
				if tt.after > 0 {
					time.AfterFunc(tt.after, r.srv.conn(0).answer)
				}
				stop := time.AfterFunc(tt.ctx, r.cancel)
				defer stop.Stop()
				must(t, r.close())
				if took := time.Since(began); took != tt.took {
					t.Errorf("took %v", took)
				}
				r.wants(`"id":7`, tt.wants)
				if c := r.srv.conn(0); !c.ended || c.endReason != upstream.ErrClosed {
					t.Errorf("ended %v, %v", c.ended, c.endReason)
				}
			})
		})
	}
}

// TestContextEnds: a signal ends the service though the client says nothing.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, &fakeServer{init: version})
		go r.read()
		r.write(initLine, hang)
		r.wants(`"i"`)
		synctest.Wait()
		r.cancel()
		must(t, <-r.done)
		r.wants(`"id":7`, `session_ended`)
		if !r.srv.conn(0).ended {
			t.Error("the session goes on")
		}
		_ = r.in.Close()
	})
}

// TestClientDoesNotRead: it is cut off at a bound, and the service ends.
func TestClientDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, &fakeServer{init: version})
		defer r.cancel()
		r.write(initLine)
		synctest.Wait()
		c := r.srv.conn(0)
		block := []byte(`{"jsonrpc":"2.0","method":"x","params":"` + strings.Repeat("x", 1<<20) + `"}`)
		n := 0
		for c.events.Deliver(upstream.Frame{Data: block}) == upstream.Taken {
			if n++; n > 100 {
				t.Fatal("there is no bound")
			}
		}
		if err := <-r.done; !errors.Is(err, errNotRead) {
			t.Errorf("error %v", err)
		}
		if n < 63 || !c.ended {
			t.Errorf("after %d MiB; ended %v", n, c.ended)
		}
		_ = r.out.Close() // lets the hanging Write go
		_ = r.in.Close()
	})
}

// TestClientReadsNoMore: input has ended, and nobody reads what is left.
func TestClientReadsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, &fakeServer{init: version})
		r.write(initLine)
		synctest.Wait()
		began := time.Now()
		if err := r.close(); !errors.Is(err, errNotRead) || time.Since(began) != lastWrite {
			t.Errorf("error %v after %v", err, time.Since(began))
		}
		_ = r.out.Close()
	})
}

// TestClientGone: a broken output ends the service.
func TestClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, &fakeServer{init: version})
		defer r.cancel()
		_ = r.out.CloseWithError(errGone)
		r.write(initLine)
		if err := <-r.done; !errors.Is(err, errGone) {
			t.Errorf("error %v", err)
		}
		if c := r.srv.conn(0); !c.ended {
			t.Error("the session goes on")
		}
		_ = r.in.Close()
	})
}

func TestInputBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, &fakeServer{init: version})
		defer r.cancel()
		go r.read()
		r.write(initLine)
		r.wants(`"i"`)
		_ = r.in.CloseWithError(errGone)
		if err := <-r.done; !errors.Is(err, errGone) || !r.srv.conn(0).ended {
			t.Errorf("error %v", err)
		}
	})
}
