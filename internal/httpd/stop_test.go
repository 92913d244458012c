package httpd

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newWaiter(func(r *http.Request) string {
			select {
			case <-time.After(10 * time.Second):
				return "done"
			case <-r.Context().Done():
				return "cancelled"
			}
		})
		r := serve(t, newMemListener(), Config{ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute, Handler: x})
		idle, fresh, late, busy, slow := r.dial(), r.dial(), r.dial(), r.dial(), r.dial()
		idle.send(get)
		<-x.begun
		idle.answer()
		<-x.over
		busy.send(get)
		<-x.begun
		slow.send(get[:10])
		synctest.Wait()

		began := time.Now()
		stopped := make(chan error)
		go func() { stopped <- r.s.Shutdown(t.Context()) }()
		idle.ended()
		if time.Since(began) != 0 {
			t.Error("the idle one was closed late")
		}
		if _, err := r.l.(*memListener).dial(t.Context(), "", ""); err == nil {
			t.Error("still listening")
		}
		// A request that is on its way is answered; a head that has begun is
		// waited for.
		late.send(get)
		slow.send(get[10:])
		fresh.ended()
		for _, c := range []*client{late, slow} {
			<-x.begun
			if res, _ := c.answer(); res.StatusCode != 200 || !res.Close {
				t.Errorf("%d, %v", res.StatusCode, res.Close)
			}
			c.ended()
		}
		if res, _ := busy.answer(); !res.Close {
			t.Error("the busy one does not close")
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		for range 3 {
			if why := <-x.over; why != "done" {
				t.Error(why)
			}
		}
		if took := time.Since(began); took < 10*time.Second || took > 11*time.Second {
			t.Error("it took", took)
		}
		if err := r.s.Serve(newMemListener()); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

func TestShutdownGivesUpAndCloseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newWaiter(onDone)
		unread := make(chan error, 1)
		r := serve(t, newMemListener(), Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "GET" {
				x.ServeHTTP(w, r)
				return
			}
			<-r.Context().Done() // its body is not there: nobody watches
			_, err := io.ReadAll(r.Body)
			unread <- err
		})})
		c, d := r.dial(), r.dial()
		c.send(get)
		<-x.begun
		d.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\na")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		select {
		case why := <-x.over:
			t.Error("cut off already:", why)
		default:
		}
		if err := r.s.Close(); err != nil {
			t.Error(err)
		}
		if why := <-x.over; why != context.Canceled.Error() {
			t.Error(why)
		}
		if err := <-unread; err == nil {
			t.Error("a body was read")
		}
		synctest.Wait()
		if n := len(r.s.conns); n != 0 {
			t.Errorf("%d connections left", n)
		}
	})
}

func TestSeveralListeners(t *testing.T) {
	r := serveTCP(t, Config{Handler: echo})
	other := newMemListener()
	served := make(chan error)
	go func() { served <- r.s.Serve(other) }()
	second := &rig{t: t, l: other}
	for _, c := range []*client{r.dial(), second.dial()} {
		c.send(get)
		c.answer()
		c.Close()
	}
	if err := r.s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// failing is a listener that fails for a while.
type failing struct {
	*memListener
	left atomic.Int32
	err  error
}

func (l *failing) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, l.err
	}
	return l.memListener.Accept()
}

type temporary struct{ error }

func (temporary) Temporary() bool { return true }

func TestAcceptFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &failing{memListener: newMemListener(), err: temporary{errors.New("no descriptors")}}
		l.left.Store(5)
		s := New(Config{Handler: echo, Log: quiet})
		served := make(chan error)
		go func() { served <- s.Serve(l) }()
		c := (&rig{t: t, l: l.memListener}).dial()
		c.send(get)
		c.answer()
		c.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		l = &failing{memListener: newMemListener(), err: errors.New("broken")}
		l.left.Store(1)
		if err := New(Config{Handler: echo, Log: quiet}).Serve(l); !errors.Is(err, l.err) {
			t.Error(err)
		}
	})
}
