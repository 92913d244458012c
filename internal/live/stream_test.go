package live

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

const (
	progressText = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`
	toolsChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	customText   = `{"jsonrpc":"2.0","method":"x/custom","params":{}}`
	logText      = `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`
)

func TestCallIsAnsweredOnce(t *testing.T) {
	r := newRig(t, nil)
	s, _ := r.open()
	rd, k := r.call(s, 7, TakesBoth)
	defer rd.Close()
	if v := k.deliver(progressText, upstream.Own); v != upstream.Taken {
		t.Errorf("progress: %v", v)
	}
	k.answer(`{"a":1}`)
	want := "1 " + progressText + "\n2 " + `{"jsonrpc":"2.0","id":7,"result":{"a":1}}` + "\nover"
	if got := drain(rd); got != want {
		t.Errorf("got %s", got)
	}
	if v := k.deliver(progressText, upstream.Own); v != upstream.Closed {
		t.Errorf("progress after the reply: %v", v)
	}
}

func TestCallWithoutReplyGetsItsError(t *testing.T) {
	r := newRig(t, nil)
	s, _ := r.open()
	for _, c := range []struct {
		name  string
		takes Takes
		err   error
		want  string
	}{
		{"timeout", TakesBoth, upstream.ErrTimeout, `1 {"jsonrpc":"2.0","id":3,"error":{"code":-32000,`},
		{"no reason", TakesBoth, nil, `"reason":"session_ended"`},
		{"cancelled, stream", TakesBoth, upstream.ErrCancelled, "over"},
		{"cancelled, event stream only", TakesSSE, upstream.ErrCancelled, "over"},
		{"cancelled, JSON only", TakesJSON, upstream.ErrCancelled, `"reason":"cancelled"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			rd, k := r.call(s, 3, c.takes)
			defer rd.Close()
			k.fail(c.err)
			got := drain(rd)
			if !strings.Contains(got, c.want) || !strings.HasSuffix(got, "over") || c.want == "over" && got != "over" {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestStartErrorIsTheAnswer(t *testing.T) {
	r := newRig(t, nil)
	s, conn := r.open()
	conn.mu.Lock()
	conn.startErr = upstream.ErrBusy
	conn.mu.Unlock()
	rd, err := s.Call(TakesBoth, []upstream.Request{request(5, "x")})
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	if got := drain(rd); !strings.Contains(got, `"id":5`) || !strings.Contains(got, `"busy"`) || !strings.HasSuffix(got, "over") {
		t.Errorf("got %s", got)
	}
}

// A batch of nothing but refused elements has no call whose end could end its
// stream.
func TestBatchOfRefusedElementsEnds(t *testing.T) {
	r := newRig(t, nil)
	s, _ := r.open()
	rd, err := s.Call(TakesBoth, nil, []byte(`{"x":1}`), []byte(`{"x":2}`))
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	if got := drain(rd); got != "1 {\"x\":1}\n2 {\"x\":2}\nover" {
		t.Errorf("got %s", got)
	}
}

func TestFramesOfACallGoWhereItsClientReads(t *testing.T) {
	r := newRig(t, nil)
	s, _ := r.open()
	for _, c := range []struct {
		name       string
		takes      Takes
		left       bool
		own, loose upstream.Verdict
	}{
		{"stream", TakesBoth, false, upstream.Taken, upstream.Taken},
		{"event stream only", TakesSSE, false, upstream.Taken, upstream.Taken},
		{"JSON only", TakesJSON, false, upstream.NoTaker, upstream.NoTaker},
		{"client left", TakesSSE, true, upstream.Taken, upstream.NoTaker},
	} {
		t.Run(c.name, func(t *testing.T) {
			rd, k := r.call(s, 1, c.takes)
			if c.left {
				rd.Keep()
				rd.Close()
			} else {
				defer rd.Close()
			}
			if v := k.deliver(progressText, upstream.Own); v != c.own {
				t.Errorf("progress: %v", v)
			}
			if v := k.deliver(logText, upstream.Loose); v != c.loose {
				t.Errorf("log message: %v", v)
			}
			k.answer(`{}`)
		})
	}
}

func TestUnaskedEventsWaitForAStream(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.WaitingEvents = 3 })
	s, conn := r.open()
	if v := conn.tell(logText, upstream.Loose); v != upstream.NoTaker {
		t.Errorf("loose without a reader: %v", v)
	}
	for range 5 {
		if v := conn.tell(toolsChanged, upstream.Waiting); v != upstream.Taken {
			t.Errorf("list change: %v", v)
		}
	}
	other := `{"jsonrpc":"2.0","method":"x","params":`
	for i, want := range []upstream.Verdict{upstream.Taken, upstream.Taken, upstream.NoTaker} {
		if v := conn.tell(fmt.Sprint(other, "[", i, "]}"), upstream.Waiting); v != want {
			t.Errorf("event %d: %v", i, v)
		}
	}
	rd, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := drain(rd), "1 "+toolsChanged+"\n2 "+other+"[0]}\n3 "+other+"[1]}"; got != want {
		t.Errorf("got %s", got)
	}
	rd.Close()
	if v := conn.tell(toolsChanged, upstream.Waiting); v != upstream.Taken {
		t.Errorf("list change after the first was fetched: %v", v)
	}
	rd, err = s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	if got := drain(rd); got != "4 "+toolsChanged {
		t.Errorf("second stream: %s", got)
	}
}

// What waits is never given up for the sake of a full log.
func TestWaitingEventsOutliveAFullLog(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.AllLogBytes = 1 })
	s, conn := r.open()
	for i := range 10 {
		conn.tell(fmt.Sprintf(`{"jsonrpc":"2.0","method":"x","params":[%d]}`, i), upstream.Waiting)
	}
	rd, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	if got := drain(rd); strings.Count(got, "\n") != 9 || !strings.HasPrefix(got, "1 ") {
		t.Errorf("got %s", got)
	}
}

func TestSecondListenerTakesOver(t *testing.T) {
	r := newRig(t, nil)
	s, conn := r.open()
	first, _ := s.Listen()
	conn.tell(logText, upstream.Loose)
	drain(first)
	second, _ := s.Listen()
	if got := drain(first); got != ErrTakenOver.Error() {
		t.Errorf("first: %s", got)
	}
	conn.tell(toolsChanged, upstream.Loose)
	if got := drain(second); got != "2 "+toolsChanged {
		t.Errorf("second: %s", got)
	}
	first.Close() // must not close the other's
	conn.tell(logText, upstream.Loose)
	if got := drain(second); got != "3 "+logText {
		t.Errorf("second, after the first has left: %s", got)
	}
	second.Close()
}
