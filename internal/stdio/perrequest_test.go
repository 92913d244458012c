package stdio

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// asker is a fakeServer that is reached by requests of the per-request era, too.
// It answers with the method's name, but for "hang".
type asker struct {
	fakeServer
	mu   sync.Mutex
	open []*asked
}

type asked struct {
	of   *asker
	id   string
	sink upstream.Sink
	once sync.Once
}

func (s *asker) Ask(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	a := &asked{of: s, id: string(req.Msg.Bytes(req.Msg.ID)), sink: sink}
	switch method := string(req.Msg.MethodName()); method {
	case "refuse":
		return nil, upstream.Errorf(-32000, "busy", "busy")
	case "hang":
		s.mu.Lock()
		s.open = append(s.open, a)
		s.mu.Unlock()
	default:
		sink.Deliver(upstream.Frame{Data: []byte(`{"jsonrpc":"2.0","method":"notifications/message"}`), Relation: upstream.Own})
		sink.Deliver(upstream.Frame{Data: wire.AppendResult(nil, []byte(a.id), []byte(`"`+method+`"`)), Relation: upstream.Reply})
		sink.End(nil)
	}
	return a, nil
}

func (a *asked) Cancel(reason error) { a.once.Do(func() { a.sink.End(reason) }) }

func modern(id, method string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
}

// Both eras on one pipe, in any order: each message by its own rules.
func TestPerRequest(t *testing.T) {
	srv := &asker{fakeServer: fakeServer{init: version}}
	serveOn(t, srv, &srv.fakeServer, func(r *run) {
		r.write(modern(`"a"`, "x"))
		r.wants(`notifications/message`)
		r.wants(`{"jsonrpc":"2.0","id":"a","result":"x"}`)
		r.write(initLine)
		r.wants(`"id":"i"`)
		r.write(modern("9007199254740993", "x"))
		r.wants(`notifications/message`)
		r.wants(`{"jsonrpc":"2.0","id":9007199254740993,"result":"x"}`)
		r.write(ping)
		r.wants(`notifications/progress`)
		r.wants(`{"jsonrpc":"2.0","id":2,"result":"ping"}`)
		r.write(modern("3", "ping"))
		r.wants(`"id":3`, `-32601`)
		r.write(modern("4", "refuse"))
		r.wants(`"id":4`, `-32603`)
		r.write(strings.Replace(modern("5", "x"), "2026-07-28", "2027-01-01", 1))
		r.wants(`"id":5`, `-32022`, `"supported":["2026-07-28"`)
		r.write(strings.Replace(modern("6", "x"), `,"io.modelcontextprotocol/clientCapabilities":{}`, "", 1))
		r.wants(`"id":6`, `-32602`)
		r.nothing()
	})
}

// A cancelled request gets no answer; the cancel of another is the session's.
func TestPerRequestCancel(t *testing.T) {
	srv := &asker{fakeServer: fakeServer{init: version}}
	serveOn(t, srv, &srv.fakeServer, func(r *run) {
		r.write(modern("1", "hang"), modern(`"1"`, "hang"))
		synctest.Wait()
		r.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		synctest.Wait()
		r.nothing()
		srv.mu.Lock()
		defer srv.mu.Unlock()
		for _, a := range srv.open {
			if a.id == `"1"` {
				a.once.Do(func() { a.sink.End(upstream.Errorf(-32603, "x", "ended by the test")) })
			}
		}
		r.wants(`"id":"1"`, "ended by the test")
	})
}

// A cancel may say of which era it is, as requests do, and spell the id otherwise.
func TestPerRequestCancelWithMeta(t *testing.T) {
	srv := &asker{fakeServer: fakeServer{init: version}}
	serveOn(t, srv, &srv.fakeServer, func(r *run) {
		r.write(modern(`"ab"`, "hang"))
		synctest.Wait()
		r.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0061b","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
		synctest.Wait()
		r.nothing()
		srv.mu.Lock()
		defer srv.mu.Unlock()
		cancelled := true
		srv.open[0].once.Do(func() {
			cancelled = false
			srv.open[0].sink.End(upstream.ErrCancelled)
		})
		if !cancelled {
			t.Error("the server was not told of the cancel")
		}
	})
}

func TestNoAsker(t *testing.T) {
	serve(t, &fakeServer{init: version}, func(r *run) {
		r.write(modern("1", "server/discover"))
		r.wants(`"id":1`, `-32601`)
	})
}
