package front

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/live"
)

// One client stops reading while its server talks on. Nobody else notices;
// progress that it has no room for is dropped, its answer is not.
func TestSlowReader(t *testing.T) {
	inBubble(t, setup{limits: func(l *live.Limits) { l.QueueEvents = 100 }}, func(t *testing.T, r *rig) {
		session, other := r.open("2025-11-25"), r.open(rev)
		p := r.procs.list[0]
		slow := r.stream("POST", "/mcp", slowCall, session)
		slow.next()
		msg := p.next()
		for i := range 2000 {
			p.progress(msg, i)
			if i%100 == 0 {
				synctest.Wait()
			}
		}
		p.answer(msg, "{}")
		if got := r.do("POST", "/mcp", ping, session); got.status != 200 {
			t.Errorf("its other call: %d", got.status)
		}
		if got := r.do("POST", "/mcp", ping, other); got.status != 200 {
			t.Errorf("another session: %d", got.status)
		}
		if r.metric("signalbox_stream_drops_total", "") == 0 {
			t.Error("all its progress was kept")
		}
		rest := slow.rest()
		if len(rest) == 0 || rest[len(rest)-1] != `{"jsonrpc":"2.0","id":9,"result":{}}` {
			t.Errorf("it got %d events, without the answer", len(rest))
		}
		if r.metric("signalbox_slow_readers_total", "") != 0 {
			t.Error("it was cut off")
		}
	})
}

func TestDeadReaderIsLetGo(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		r.get(session) // never read
		p := r.procs.last()
		event := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + strings.Repeat("x", 100_000) + `"}}`
		p.say(event)
		time.Sleep(writeTimeout - time.Second)
		if r.metric("signalbox_streams", "") != 1 {
			t.Error("let go too early")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if r.metric("signalbox_streams", "") != 0 {
			t.Error("still there")
		}
	})
}

// A client that reads slowly, but reads, gets a large answer whole.
func TestSlowDownload(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		p := r.procs.last()
		large := strings.Repeat("x", 3*writePart)
		go func() { p.answer(p.next(), `"`+large+`"`) }()
		for _, accept := range []string{"application/json", "text/event-stream"} {
			req := r.request("POST", "/mcp", slowCall, session, "Accept: "+accept)
			res, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			var body []byte
			buf := make([]byte, 64<<10)
			for err == nil {
				var n int
				n, err = io.ReadFull(res.Body, buf)
				body = append(body, buf[:n]...)
				time.Sleep(writeTimeout / 10)
			}
			res.Body.Close()
			if !strings.Contains(string(body), large) {
				t.Errorf("%s: %d bytes, %v", accept, len(body), err)
			}
			go func() { p.answer(p.next(), `"`+large+`"`) }()
		}
		r.do("POST", "/mcp", slowCall, session)
	})
}

// HTTP/2 ends a stream when a write deadline passes, written to or not.
func TestStreamsOverHTTP2(t *testing.T) {
	inBubble(t, setup{keepalive: 2 * writeTimeout}, func(t *testing.T, r *rig) {
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		tr := &http.Transport{DialContext: r.listen.dial, Protocols: protocols}
		defer tr.CloseIdleConnections()
		client := &http.Client{Transport: tr}
		session := r.open("2025-11-25")
		p := r.procs.last()
		var streams []*stream
		for range 30 {
			streams = append(streams, r.streamOf(client, r.request("POST", "/mcp", slowCall, session)))
		}
		own := r.streamOf(client, r.request("GET", "/mcp", "", session))
		if own.res.ProtoMajor != 2 || own.res.Header.Get("Connection") != "" {
			t.Errorf("%s, %v", own.res.Proto, own.res.Header)
		}
		if e := own.next(); len(e.Data) != 0 {
			t.Errorf("first event %+v", e)
		}
		time.Sleep(5 * writeTimeout)
		p.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		if e := own.next(); !strings.Contains(string(e.Data), "list_changed") {
			t.Errorf("event %s", e.Data)
		}
		res, err := client.Do(r.request("POST", "/mcp", ping, session))
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		res.Body.Close()
		for range streams {
			p.answer(p.next(), "{}")
		}
		for _, s := range streams {
			if rest := s.rest(); len(rest) != 2 {
				t.Errorf("a call: %q", rest)
			}
		}
		own.close()
	})
}

func TestDrainEndsStreamsAndKeepsCalls(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		p := r.procs.last()
		own := r.get(session)
		call := r.stream("POST", "/mcp", slowCall, session)
		drained := make(chan struct{})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		go func() {
			defer close(drained)
			r.live.Drain(ctx)
		}()
		own.rest()
		if !strings.HasSuffix(own.raw.String(), "retry: 1000\n\n") {
			t.Errorf("own stream: %q", own.raw.String())
		}
		if got := r.do("POST", "/mcp", initBody(rev)); got.status != 503 || got.header.Get("Retry-After") == "" {
			t.Errorf("new session: %d %s", got.status, got.body)
		}
		p.answer(p.next(), "{}")
		if rest := call.rest(); !slices.Contains(rest, `{"jsonrpc":"2.0","id":9,"result":{}}`) {
			t.Errorf("call: %q", rest)
		}
		<-drained
	})
}

// What a client has read to its end counts for the bounds of what is kept.
func TestReadStreamsAreGivenUp(t *testing.T) {
	inBubble(t, setup{limits: func(l *live.Limits) { l.SessionLogBytes = 1000 }}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		p := r.procs.last()
		call := r.stream("POST", "/mcp", slowCall, session)
		msg := p.next()
		p.progress(msg, 1)
		r.settle() // that is being written
		p.answer(msg, `"`+strings.Repeat("x", 5000)+`"`)
		r.settle() // so that the answer and the end are fetched at once
		call.rest()
		r.settle()
		if n := r.metric("signalbox_event_log_bytes", ""); n != 0 {
			t.Errorf("%v bytes are held", n)
		}
	})
}
