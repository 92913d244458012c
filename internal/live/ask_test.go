package live

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// asker is a fakeServer of the per-request era: all requests are calls of one
// fakeConn, which no session has.
type asker struct {
	*fakeServer
	conn   *fakeConn
	refuse error
	closed int
}

func (a *asker) Ask(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	if a.refuse != nil {
		return nil, a.refuse
	}
	return a.conn.Start(req, sink)
}

func (a *asker) Close() { a.closed++ }

// asking runs a test with such a server.
func asking(t *testing.T, change func(*Limits), f func(t *testing.T, r *rig, a *asker)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, change)
		a := &asker{fakeServer: r.srv}
		a.conn = &fakeConn{srv: r.srv, calls: make(chan *fakeCall, 4096), open: make(map[*fakeCall]bool)}
		r.b = &Backend{Name: "srv", Server: a}
		f(t, r, a)
		if r.b.lone != 0 || len(r.m.lone) != 0 {
			t.Errorf("left: %d calls of the server, %d of all", r.b.lone, len(r.m.lone))
		}
	})
}

func ask(t *testing.T, method string) upstream.Request {
	t.Helper()
	msg, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	return upstream.NewRequest(msg)
}

// all is what a reader gets until its stream is over.
func all(t *testing.T, r *Reader) string {
	t.Helper()
	var text []string
	for {
		events, over, err := r.Take(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			text = append(text, string(e.Data))
		}
		if over {
			return strings.Join(text, "\n")
		}
		<-r.Wake()
	}
}

func TestAsk(t *testing.T) {
	asking(t, nil, func(t *testing.T, r *rig, a *asker) {
		reader, err := r.m.Ask(r.b, "ann", TakesBoth, ask(t, "tools/call"))
		if err != nil {
			t.Fatal(err)
		}
		k := <-a.conn.calls
		k.deliver(`{"jsonrpc":"2.0","method":"notifications/message"}`, upstream.Own)
		k.answer(`{"x":1}`)
		if got := all(t, reader); got != `{"jsonrpc":"2.0","method":"notifications/message"}`+"\n"+`{"jsonrpc":"2.0","id":7,"result":{"x":1}}` {
			t.Errorf("got %s", got)
		}
		reader.Keep()
		reader.Close()
		if n := r.m.slots; n != 0 {
			t.Errorf("%d sessions", n)
		}
		if st := r.m.State(r.b); st.WorkedAt.IsZero() || st.Started != 0 || st.Failure != "" {
			t.Errorf("state %+v", st)
		}
		reader, err = r.m.Ask(r.b, "ann", TakesBoth, ask(t, "tools/call"))
		if err != nil {
			t.Fatal(err)
		}
		k = <-a.conn.calls
		k.fail(upstream.Errorf(-32603, "process_exited", "exited"))
		reader.Close()
		if st := r.m.State(r.b); st.Failure != "exited" {
			t.Errorf("state %+v", st)
		}
	})
}

// A client that leaves has cancelled.
func TestAskIsCancelledByLeaving(t *testing.T) {
	asking(t, nil, func(t *testing.T, r *rig, a *asker) {
		reader, err := r.m.Ask(r.b, "ann", TakesBoth, ask(t, "tools/call"))
		if err != nil {
			t.Fatal(err)
		}
		k := <-a.conn.calls
		reader.Close()
		if why := k.why(); !errors.Is(why, upstream.ErrCancelled) {
			t.Errorf("the server was told %v", why)
		}
		if v := k.deliver(`{"jsonrpc":"2.0","method":"notifications/message"}`, upstream.Own); v == upstream.Taken {
			t.Error("a message of a cancelled call was taken")
		}
	})
}

// What is refused before it is sent leaves nothing, whoever refuses it.
func TestAskRefused(t *testing.T) {
	asking(t, func(l *Limits) { l.PrincipalCalls = 1 }, func(t *testing.T, r *rig, a *asker) {
		for _, refusal := range []error{upstream.ErrTooMany, &upstream.Elsewhere{Replica: "other"}} {
			a.refuse = refusal
			if _, err := r.m.Ask(r.b, "ann", TakesBoth, ask(t, "tools/call")); err != refusal {
				t.Errorf("%v, want %v", err, refusal)
			}
		}
		a.refuse = nil
		reader, err := r.m.Ask(r.b, "ann", TakesBoth, ask(t, "tools/call"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.m.Ask(r.b, "ann", TakesBoth, ask(t, "tools/call")); err != ErrPrincipalCalls {
			t.Errorf("a second call: %v", err)
		}
		reader.Close()
	})
	asking(t, nil, func(t *testing.T, r *rig, _ *asker) {
		r.b.Server = r.srv // of the handshake era only
		if _, err := r.m.Ask(r.b, "ann", TakesBoth, ask(t, "tools/call")); err != upstream.ErrNoAsker {
			t.Error(err)
		}
	})
}

// A server that is no longer offered ends its listens, serves its calls to the end,
// and is closed then.
func TestAskAtARetiredServer(t *testing.T) {
	asking(t, nil, func(t *testing.T, r *rig, a *asker) {
		listen, err := r.m.Ask(r.b, "ann", TakesBoth, ask(t, "subscriptions/listen"))
		if err != nil {
			t.Fatal(err)
		}
		call, err := r.m.Ask(r.b, "ann", TakesBoth, ask(t, "tools/call"))
		if err != nil {
			t.Fatal(err)
		}
		<-a.conn.calls
		k := <-a.conn.calls
		r.m.Retire(r.b)
		if got := all(t, listen); got != string(upstream.ListenEnd([]byte("7"))) {
			t.Errorf("got %s", got)
		}
		listen.Close()
		if _, err := r.m.Ask(r.b, "ann", TakesBoth, ask(t, "tools/call")); err != ErrRetired {
			t.Error(err)
		}
		synctest.Wait()
		if a.closed != 0 {
			t.Error("closed under a call")
		}
		k.answer(`{}`)
		call.Close()
		synctest.Wait()
		if a.closed != 1 {
			t.Errorf("closed %d times", a.closed)
		}
	})
}

// The end of Signalbox ends listens with a result, at once, and calls with an error,
// at the very end.
func TestAskAtTheEnd(t *testing.T) {
	asking(t, nil, func(t *testing.T, r *rig, a *asker) {
		listen, err := r.m.Ask(r.b, "ann", TakesBoth, ask(t, "subscriptions/listen"))
		if err != nil {
			t.Fatal(err)
		}
		call, err := r.m.Ask(r.b, "ann", TakesBoth, ask(t, "tools/call"))
		if err != nil {
			t.Fatal(err)
		}
		r.m.StartDrain()
		if got := all(t, listen); got != string(upstream.ListenEnd([]byte("7"))) {
			t.Errorf("got %s", got)
		}
		if _, err := r.m.Ask(r.b, "ann", TakesBoth, ask(t, "subscriptions/listen")); err != ErrDraining {
			t.Error(err)
		}
		late, err := r.m.Ask(r.b, "ann", TakesBoth, ask(t, "tools/call")) // a retry of a parked call must get through
		if err != nil {
			t.Fatal(err)
		}
		r.m.Close()
		for _, reader := range []*Reader{call, late} {
			if got := all(t, reader); !strings.Contains(got, `"id":7,"error":{"code":-32603`) || !strings.Contains(got, `"reason":"shutdown"`) {
				t.Errorf("got %s", got)
			}
			reader.Close()
		}
		listen.Close()
	})
}

// A request has no session to lose: that of a bridge is nobody's but Signalbox's,
// and its loss an error as any other.
func TestAskKnowsNoSession(t *testing.T) {
	asking(t, nil, func(t *testing.T, r *rig, a *asker) {
		for _, takes := range []Takes{TakesBoth, TakesJSON, TakesSSE} {
			reader, err := r.m.Ask(r.b, "ann", takes, ask(t, "tools/call"))
			if err != nil {
				t.Fatal(err)
			}
			(<-a.conn.calls).fail(fmt.Errorf("tools/call: %w", upstream.ErrLost))
			if got := all(t, reader); !strings.Contains(got, `"code":-32603`) {
				t.Errorf("got %s", got)
			}
			reader.Close()
		}
	})
}
