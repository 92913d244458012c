package front

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const slowCall = `{"jsonrpc":"2.0","id":9,"method":"slow","params":{"_meta":{"progressToken":"tok"}}}`

func TestAnswerWithin100msIsJSON(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{99 * time.Millisecond, "application/json"}, {101 * time.Millisecond, "text/event-stream"}} {
		inBubble(t, setup{}, func(t *testing.T, r *rig) {
			session := r.open(rev)
			p := r.procs.last()
			go func() {
				msg := p.next()
				time.Sleep(c.after)
				p.answer(msg, "{}")
			}()
			got := r.do("POST", "/mcp", slowCall, session)
			if ct := got.header.Get("Content-Type"); ct != c.want || !strings.Contains(got.body, `{"jsonrpc":"2.0","id":9,"result":{}}`) {
				t.Errorf("after %v: %s %s", c.after, ct, got.body)
			}
		})
	}
}

func TestJSONOnlyClientWaitsForItsJSON(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		p := r.procs.last()
		go func() {
			msg := p.next()
			p.progress(msg, 1)
			p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
			time.Sleep(time.Minute)
			p.answer(msg, "{}")
		}()
		got := r.do("POST", "/mcp", slowCall, session, "Accept: application/json")
		if got.header.Get("Content-Type") != "application/json" || got.body != `{"jsonrpc":"2.0","id":9,"result":{}}` {
			t.Errorf("got %v %s", got.header, got.body)
		}
	})
}

func TestStreamOfACall(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open("2025-11-25")
		p := r.procs.last()
		begin := time.Now()
		s := r.stream("POST", "/mcp", slowCall, session)
		if d := time.Since(begin); d != decideWait {
			t.Errorf("opened after %v", d)
		}
		for name, want := range map[string]string{"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no", "Content-Type": "text/event-stream", "Mcp-Session-Id": "", "Content-Encoding": ""} {
			if got := s.res.Header.Get(name); got != want {
				t.Errorf("%s: %q", name, got)
			}
		}
		if e := s.next(); !e.HasID || e.ID == "" || !e.HasData || len(e.Data) != 0 {
			t.Errorf("first event: %+v", e)
		}
		msg := p.next()
		ids := map[string]bool{}
		for i := range 3 { // each is there at once
			at := time.Now()
			p.progress(msg, i)
			e := s.next()
			if !strings.Contains(string(e.Data), fmt.Sprintf(`"progressToken":"tok","progress":%d`, i)) || e.Type != "message" || ids[e.ID] {
				t.Errorf("event %+v", e)
			}
			ids[e.ID] = true
			if d := time.Since(at); d > 0 {
				t.Errorf("event after %v", d)
			}
			time.Sleep(time.Second)
		}
		// A request of the server belongs on the call's stream.
		p.say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`)
		if e := s.next(); !strings.Contains(string(e.Data), "elicitation/create") {
			t.Errorf("got %s", e.Data)
		}
		p.answer(msg, "{}")
		p.progress(msg, 99) // after the response: dropped
		if rest := s.rest(); len(rest) != 1 || rest[0] != `{"jsonrpc":"2.0","id":9,"result":{}}` {
			t.Errorf("end: %q", rest)
		}
	})
}

// A frame that is no response opens the stream at once.
func TestFirstFrameOpensTheStream(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		p := r.procs.last()
		go func() {
			msg := p.next()
			p.progress(msg, 1)
			time.Sleep(10 * time.Millisecond)
			p.answer(msg, "{}")
		}()
		begin := time.Now()
		s := r.stream("POST", "/mcp", slowCall, session)
		if d := time.Since(begin); d != 0 {
			t.Errorf("opened after %v", d)
		}
		if rest := s.rest(); len(rest) != 2 {
			t.Errorf("got %q", rest)
		}
	})
}

// Only a client of 2025-11-25 can read an event without data.
func TestPrimingEvent(t *testing.T) {
	for version, primed := range map[string]bool{"2024-11-05": false, "2025-03-26": false, "2025-06-18": false, "2025-11-25": true} {
		t.Run(version, func(t *testing.T) {
			inBubble(t, setup{}, func(t *testing.T, r *rig) {
				session := r.open(version)
				for name, s := range map[string]*stream{
					"GET":  r.get(session),
					"POST": r.stream("POST", "/mcp", `{"jsonrpc":"2.0","id":5,"method":"echo","params":{}}`, session, "Accept: text/event-stream"),
				} {
					synctest.Wait()
					r.procs.last().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
					e := s.next()
					if got := len(e.Data) == 0; got != primed || !e.HasID {
						t.Errorf("%s: first event %+v", name, e)
					}
					if !primed && !strings.HasPrefix(s.raw.String(), ": open\n\n") {
						t.Errorf("%s begins with %q", name, s.raw.String())
					}
				}
			})
		})
	}
}

func TestKeepalive(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		_, ls := r.legacyReady()
		streams := map[string]*stream{"GET": r.get(session), "POST": r.stream("POST", "/mcp", slowCall, session), "/sse": ls}
		streams["GET"].comment(": open")
		streams["POST"].comment(": open")
		time.Sleep(time.Second) // between the ticks
		for range 10 {
			time.Sleep(keepalive)
			for _, s := range streams {
				s.comment(": keepalive")
			}
		}
		p := r.procs.list[0]
		p.answer(p.next(), "{}")
	})
}

func TestCancelledCall(t *testing.T) {
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open("2025-11-25")
		p := r.procs.last()
		s := r.stream("POST", "/mcp", slowCall, session)
		p.next()
		if got := r.do("POST", "/mcp", cancel, session); got.status != 202 {
			t.Fatalf("cancel: %d", got.status)
		}
		if rest := s.rest(); len(rest) != 1 || rest[0] != "" {
			t.Errorf("its stream holds more than the first event: %q", rest)
		}
		if !p.saw("notifications/cancelled") || p.saw(`"requestId":9`) {
			t.Error("the server was not told under its own id")
		}
		answer := make(chan reply)
		go func() { answer <- r.do("POST", "/mcp", slowCall, session, "Accept: application/json") }()
		p.next()
		r.do("POST", "/mcp", cancel, session)
		if got := <-answer; got.status != 200 || replyID(got.body) != "9" || lookup(got.body, "error", "data", "reason") != `"cancelled"` {
			t.Errorf("JSON only: %d %s", got.status, got.body)
		}
		// A cancel before the stream is open: it opens and ends.
		go func() { answer <- r.do("POST", "/mcp", slowCall, session) }()
		p.next()
		r.do("POST", "/mcp", cancel, session)
		if got := <-answer; got.header.Get("Content-Type") != "text/event-stream" || strings.Contains(got.body, "jsonrpc") {
			t.Errorf("before the stream: %v %s", got.header, got.body)
		}
	})
}

func TestBatches(t *testing.T) {
	const version = "2025-03-26"
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(version)
		p := r.procs.last()
		got := r.do("POST", "/mcp", "["+ping+`,{"jsonrpc":"2.0","id":"6","method":"echo","params":{"a":1}},`+initialized+"]", session)
		if got.header.Get("Content-Type") != "application/json" || got.body[0] != '[' || !strings.Contains(got.body, `{"jsonrpc":"2.0","id":5,"result":{}}`) || !strings.Contains(got.body, `{"jsonrpc":"2.0","id":"6","result":{"a":1}}`) {
			t.Errorf("array: %v %s", got.header, got.body)
		}
		// Elements that are none get an error each, the others their answer.
		for _, accept := range []string{"application/json", "text/event-stream", "*/*"} {
			got = r.do("POST", "/mcp", `[1,{"jsonrpc":"2.0","id":7},{"jsonrpc":"2.0","id":8,"method":"initialize"},`+ping+`]`, session, "Accept: "+accept)
			for _, want := range []string{`"id":null,"error"`, `"id":7,"error"`, `"id":8,"error"`, `"id":5,"result"`} {
				if got.status != 200 || !strings.Contains(got.body, want) {
					t.Errorf("%s: no %s in %s", accept, want, got.body)
				}
			}
			got = r.do("POST", "/mcp", `[1,[]]`, session, "Accept: "+accept)
			if got.status != 200 || strings.Count(got.body, `"id":null,"error"`) != 2 {
				t.Errorf("%s, only bad ones: %s", accept, got.body)
			}
		}
		// One that is slow makes it a stream.
		s := r.stream("POST", "/mcp", "["+ping+","+slowCall+"]", session)
		if e := s.next(); !strings.Contains(string(e.Data), `"id":5`) {
			t.Errorf("first: %s", e.Data)
		}
		p.answer(p.next(), "{}")
		if rest := s.rest(); len(rest) != 1 || !strings.Contains(rest[0], `"id":9`) {
			t.Errorf("rest: %q", rest)
		}
	})
}

// comment reads one comment and its blank line.
func (s *stream) comment(want string) {
	s.t.Helper()
	buf := make([]byte, len(want)+2)
	if _, err := io.ReadFull(s.res.Body, buf); err != nil || string(buf) != want+"\n\n" {
		s.t.Errorf("got %q, %v, want %q", buf, err, want)
	}
}
