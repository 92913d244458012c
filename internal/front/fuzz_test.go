package front

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// answering is an upstream.Server that answers everything at once.
type answering struct{ got chan<- string }

func (a answering) Open(init upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	finish(init, reply, `{"protocolVersion":"2025-03-26"}`)
	return answeringConn{a, events}, nil
}

func (a answering) Close() {}

type answeringConn struct {
	answering
	events upstream.Sink
}

func (c answeringConn) Start(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	c.got <- string(req.Msg.Raw)
	finish(req, sink, "{}")
	return c, nil
}

func (c answeringConn) Send(req upstream.Request) error {
	c.got <- string(req.Msg.Raw)
	return nil
}

func (c answeringConn) End(reason error)    { c.events.End(reason) }
func (c answeringConn) Cancel(reason error) {}

func finish(req upstream.Request, sink upstream.Sink, result string) {
	sink.Deliver(upstream.Frame{Data: wire.AppendResult(nil, req.Msg.Bytes(req.Msg.ID), []byte(result)), Relation: upstream.Reply})
	sink.End(nil)
}

// Whatever a client posts: no panic, no 5xx but for the documented 503, an
// answer that is a message or empty, and not a byte for the server from who has
// no session.
func FuzzPost(f *testing.F) {
	got := make(chan string, 10_000)
	r := newRig(f, setup{upstream: answering{got}, limits: func(l *live.Limits) { l.MaxSessions = 50 }})
	open := r.do("POST", "/mcp", initBody("2025-03-26"))
	id := open.header.Get("Mcp-Session-Id")
	h := r.front
	for _, c := range append(messageRows, row{body: ping}, row{body: initBody(rev)}, row{body: "[" + ping + ",1]"}, row{body: "\ufeff" + ping}) {
		f.Add([]byte(c.body), "/mcp", false, "application/json", "*/*", "", "", "")
		f.Add([]byte(c.body), "/mcp", true, "application/json", "text/event-stream", "2025-06-18", "", "")
	}
	f.Add([]byte(ping), "/messages?session_id=x", true, "", "", "x", "http://localhost", "1.2.3")
	f.Add([]byte(ping), "/servers/srv/mcp/", true, "application/json;charset=x", "application/json;q=0", "2026-07-28", "null", "")
	f.Fuzz(func(t *testing.T, body []byte, path string, session bool, contentType, accept, version, origin, token string) {
		req, err := http.NewRequest("POST", "http://localhost"+path, strings.NewReader(string(body)))
		if err != nil {
			t.Skip(err)
		}
		for name, v := range map[string]string{"Content-Type": contentType, "Accept": accept, "MCP-Protocol-Version": version, "Origin": origin, "Authorization": token, "Last-Event-ID": token} {
			if v != "" {
				req.Header.Set(name, v)
			}
		}
		if session {
			req.Header.Set("Mcp-Session-Id", id)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		res := w.Result()
		answer, _ := io.ReadAll(res.Body)
		if res.StatusCode >= 500 && res.StatusCode != 503 {
			t.Errorf("%d %s", res.StatusCode, answer)
		}
		if res.StatusCode == 503 && res.Header.Get("Retry-After") == "" {
			t.Error("503 without Retry-After")
		}
		if res.Header.Get("Content-Type") == "application/json" && !strings.HasPrefix(string(answer), "[") && !strings.Contains(string(answer), `"status"`) {
			if _, err := wire.Parse(answer); err != nil {
				t.Errorf("the answer is no message: %s", answer)
			}
		}
		for len(got) > 0 {
			if m := <-got; !session {
				t.Errorf("without a session the server got %s", m)
			}
		}
		if id := res.Header.Get("Mcp-Session-Id"); id != "" {
			if req.Header.Set("Mcp-Session-Id", id); res.StatusCode != 200 {
				t.Errorf("an id with %d", res.StatusCode)
			}
			req.Method, req.Body = "DELETE", http.NoBody
			h.ServeHTTP(httptest.NewRecorder(), req)
		}
	})
}
