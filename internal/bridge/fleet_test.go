package bridge

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

type member struct {
	fake
	closed atomic.Int32
}

func (m *member) Close() { m.closed.Add(1) }

func TestFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*member
		f := NewFleet(func(req upstream.Request) string { return req.Principal.Key() },
			func(upstream.Request) Member { m := new(member); m.reply = refusal; made = append(made, m); return m }, time.Minute)
		ask := func(who string) *box {
			req := request(t, listTools)
			req.Principal = person(who)
			b := &box{t: t}
			if _, err := f.Ask(req, b); err != nil {
				t.Fatal(err)
			}
			return b
		}
		ask("ann")
		ask("bob")
		ask("ann")
		if len(made) != 2 || len(made[0].got()) != 2 || len(made[1].got()) != 1 {
			t.Fatalf("%d members", len(made))
		}
		made[0].reply = func(upstream.Request) []byte { return nil } // never ends
		ask("ann")
		time.Sleep(2 * time.Minute)
		if made[0].closed.Load() != 0 || made[1].closed.Load() != 1 {
			t.Errorf("closed: %d of the one in use, %d of the idle one", made[0].closed.Load(), made[1].closed.Load())
		}
		ask("bob")
		if len(made) != 3 {
			t.Errorf("%d members", len(made))
		}
		f.Close()
		if made[0].closed.Load() != 1 || made[2].closed.Load() != 1 {
			t.Error("not all are closed")
		}
		if _, err := f.Ask(request(t, listTools), &box{t: t}); err != upstream.ErrShutdown {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		if made[2].closed.Load() != 1 {
			t.Error("closed twice")
		}
	})
}

func TestAnnotations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Modern)
		r.own.reply = func(req upstream.Request) []byte {
			return []byte(`{"jsonrpc":"2.0","id":1,"result":` + annotated + `}`)
		}
		a := NewAnnotations(&r.own, r.cfg.Log)
		req := request(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"region":"Zürich"},`+meta+`}}`)
		req.Header.Set("X-Other", "kept")
		before := req.Header
		a.Params(&req)
		if len(req.Header) != 1 {
			t.Errorf("headers of an unknown tool: %v", req.Header)
		}
		done := make(chan error, 1)
		a.Refresh(request(t, listTools), func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		a.Params(&req)
		if got := req.Header.Get("Mcp-Param-Region"); got != "=?base64?WsO8cmljaA==?=" || req.Header.Get("X-Other") != "kept" || len(before) != 1 {
			t.Errorf("headers %v, before %v", req.Header, before)
		}
		bad := `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"b","inputSchema":{"properties":{"x":{"type":"number","x-mcp-header":"X"}}}},{"name":"c"}]}}`
		if got := string(a.Tools([]byte(bad))); got != `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"c"}]}}` {
			t.Errorf("got %s", got)
		}
	})
}

// A tool may stand on any page of the list. A list without an end is left.
func TestAnnotationsOfPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Modern)
		pages := 0
		endless := false
		r.own.reply = func(req upstream.Request) []byte {
			pages++
			cursor := string(req.Msg.Bytes(req.Msg.P.Cursor))
			clear(req.Msg.Raw) // it is the receiver's
			switch {
			case cursor == "" || endless:
				return []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"s"}],"nextCursor":"a\"b"}}`)
			case cursor == `"a\"b"`:
				return []byte(`{"jsonrpc":"2.0","id":1,"result":` + annotated + `}`)
			}
			return []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such page"}}`)
		}
		a := NewAnnotations(&r.own, r.cfg.Log)
		refresh := func() {
			done := make(chan error, 1)
			a.Refresh(request(t, listTools), func(err error) { done <- err })
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		refresh()
		req := request(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"region":"eu"},`+meta+`}}`)
		a.Params(&req)
		if got := req.Header.Get("Mcp-Param-Region"); got != "eu" || pages != 2 {
			t.Errorf("headers %v after %d pages", req.Header, pages)
		}
		pages, endless = 0, true
		refresh()
		if pages != maxListPages {
			t.Errorf("%d pages were read", pages)
		}
	})
}
