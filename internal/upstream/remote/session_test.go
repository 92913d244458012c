package remote

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func initialized(session, result string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Mcp-Session-Id"] = []string{session}
		reply(w, r, result)
	}
}

// TestNames: the session id and the revision are the server's, or there is none.
func TestNames(t *testing.T) {
	v := `{"protocolVersion":"2025-03-26"}`
	long := strings.Repeat("s", maxName)
	tests := []struct {
		name, session, result string
		reason                string // of the refusal
		version               string
	}{
		{"usual", "!~abc", v, "", "2025-03-26"},
		{"none", "", v, "", "2025-03-26"},
		{"long", long, v, "", "2025-03-26"},
		{"too long", long + "s", v, "bad_answer", ""},
		{"space", "a b", v, "bad_answer", ""},
		{"not ASCII", "sitzung-ä", v, "bad_answer", ""},
		{"control", "a\x01b", v, "bad_answer", ""},
		{"no revision", "s", `{}`, "", ""},
		{"revision that ends the line", "s", `{"protocolVersion":"x\r\nX-Evil: 1"}`, "bad_answer", ""},
		{"revision that is a number", "s", `{"protocolVersion":7}`, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server()
				defer srv.Close()
				s.handle("initialize", initialized(tt.session, tt.result))
				c, reply := begin(t, srv)
				if tt.reason != "" {
					reply.fails(tt.reason, "")
					c.conn.End(upstream.ErrClosed)
					return
				}
				must(t, reply.end())
				c.call(list)
				h := s.all("tools/list")[0].header
				if len(h["Mcp-Session-Id"]) > 1 || h.Get("Mcp-Session-Id") != tt.session || h.Get("Mcp-Protocol-Version") != tt.version {
					t.Errorf("headers %v", h)
				}
				if _, given := h["Mcp-Session-Id"]; given != (tt.session != "") {
					t.Error("an empty session id was sent")
				}
				if _, given := h["Mcp-Protocol-Version"]; given != (tt.version != "") {
					t.Error("an empty version was sent")
				}
				want := upstream.State{Address: "http://10.0.0.1:80", Session: tt.session, Revision: mcp.Revision(tt.version)}
				if got := c.conn.(upstream.Movable).State(); !reflect.DeepEqual(got, want) {
					t.Errorf("state %+v, want %+v", got, want)
				}
			})
		})
	}
}

func TestRefusedInitialize(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		s.handle("initialize", writeAs("application/json", `{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"no"}}`))
		c, reply := begin(t, srv)
		must(t, reply.end())
		if got := reply.frame(); !strings.Contains(got, "-32602") {
			t.Errorf("got %s", got)
		}
		sink, _ := c.start(list)
		sink.fails("not_open", "")
		if err := c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); err == nil {
			t.Error("no error")
		}
		c.listen(true)
		c.conn.End(upstream.ErrClosed)
		must(t, ignore(c.events.end(), upstream.ErrClosed))
		if n := s.count(""); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

func ignore(err, want error) error {
	if err == want {
		return nil
	}
	return fmt.Errorf("got %v, want %v", err, want)
}

// TestEarly: what comes while the session is being opened waits for it.
func TestEarly(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		s.handle("initialize", func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(10 * time.Second)
			initialized("slow", `{"protocolVersion":"2025-06-18"}`)(w, r)
		})
		s.handle("GET", func(w http.ResponseWriter, r *http.Request) {
			stream(w)(data(logMs))
			<-r.Context().Done()
		})
		c, init := begin(t, srv)
		c.listen(true)
		gone, call := c.start(tool)
		sink, _ := c.start(list)
		synctest.Wait()
		if n := s.count(""); n != 1 {
			t.Fatalf("%d requests", n)
		}
		call.Cancel(upstream.ErrCancelled)
		must(t, ignore(gone.end(), upstream.ErrCancelled))
		must(t, c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
		must(t, init.end())
		must(t, sink.end())
		if got := c.events.frame(); got != logMs {
			t.Errorf("got %s", got)
		}
		for _, what := range []string{"tools/list", "notifications/initialized", "GET"} {
			if got := s.all(what); len(got) != 1 || got[0].header.Get("Mcp-Session-Id") != "slow" {
				t.Errorf("%s: %v", what, got)
			}
		}
		if s.count("tools/call") != 0 {
			t.Error("a cancelled call was sent")
		}
	})
}

func TestInitializeOnlyOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		if _, err := c.conn.Start(request(t, initialize), newSink(t)); upstream.RPCError(err).Reason != "initialized" {
			t.Errorf("error %v", err)
		}
	})
}
