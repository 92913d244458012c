package bridge

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/signalbox-mcp/signalbox/internal/bridge/state"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

type person string

func (p person) Key() string { return string(p) }

func request(t testing.TB, raw string) upstream.Request {
	t.Helper()
	msg, err := wire.Parse([]byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	req := upstream.NewRequest(msg)
	req.Principal, req.Header = person("ann"), make(http.Header)
	return req
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// fake is a server that answers each request by a function of it; a nil reply is
// none. What it was asked is kept.
type fake struct {
	name  string
	reply func(req upstream.Request) []byte
	end   error // instead of a reply

	mu    sync.Mutex
	asked []string
	at    []string // the addresses that it was asked for
	conns []*fakeConn
}

func (f *fake) note(req upstream.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, string(req.Msg.Raw))
	f.at = append(f.at, req.Address)
}

func (f *fake) got() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}

func (f *fake) Ask(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	f.note(req)
	f.answer(req, sink)
	return nothing{}, nil
}

func (f *fake) answer(req upstream.Request, sink upstream.Sink) {
	if f.reply == nil {
		sink.End(f.end)
		return
	}
	if data := f.reply(req); data != nil {
		sink.Deliver(upstream.Frame{Data: data, Method: req.Method, Relation: upstream.Reply, Address: "http://a:1"})
		sink.End(nil)
	}
}

func (f *fake) Open(init upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	f.note(init)
	c := &fakeConn{of: f, events: events}
	f.mu.Lock()
	f.conns = append(f.conns, c)
	f.mu.Unlock()
	f.answer(init, reply)
	return c, nil
}

func (f *fake) Close() {}

type nothing struct{}

func (nothing) Cancel(error) {}

type fakeConn struct {
	of     *fake
	events upstream.Sink
	once   sync.Once
	ended  error
}

func (c *fakeConn) Start(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	return c.of.Ask(req, sink)
}
func (c *fakeConn) Send(req upstream.Request) error { c.of.note(req); return nil }
func (c *fakeConn) End(reason error) {
	c.once.Do(func() { c.ended = reason; c.events.End(reason) })
}

// box notes what a sink gets.
type box struct {
	t     testing.TB
	mu    sync.Mutex
	reply string
	other []string
	ends  int
	err   error
}

func (b *box) Deliver(f upstream.Frame) upstream.Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.Relation == upstream.Reply {
		b.reply = string(f.Data)
	} else {
		b.other = append(b.other, string(f.Data))
	}
	return upstream.Taken
}

func (b *box) End(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ends++; b.ends > 1 {
		b.t.Error("ended twice")
	}
	b.err = err
}

// rig is a bridge with four fakes behind it.
type rig struct {
	*Server
	handshake, own, parked, dialog fake
	probes                         int
	finding                        Finding
	unclear                        error
	binary                         string
}

func newRig(t testing.TB, era Era) *rig {
	r := &rig{binary: "v1"}
	for name, f := range map[string]*fake{"handshake": &r.handshake, "own": &r.own, "parked": &r.parked, "dialog": &r.dialog} {
		f.name = name
		f.reply = func(req upstream.Request) []byte {
			return wire.AppendResult(nil, req.Msg.Bytes(req.Msg.ID), []byte(`{"from":"`+name+`"}`))
		}
	}
	ring, err := state.NewRing(bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	r.Server = New(Config{
		Name: "s", Era: era, Handshake: &r.handshake, PerRequest: &r.own, Parked: &r.parked, Dialog: &r.dialog, Close: func() {},
		Probe: func(context.Context) (Finding, error) { r.probes++; return r.finding, r.unclear }, Fingerprint: func() string { return r.binary },
		Verdicts: new(Verdicts), Ring: ring, SeesHeaders: true, Version: "1", Log: slog.New(slog.DiscardHandler),
	}).(*Server)
	t.Cleanup(r.Close)
	return r
}

func inBubble(t *testing.T, era Era, f func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) { f(t, newRig(t, era)) })
}

// ask sends a request of the per-request era and returns what came.
func (r *rig) ask(t testing.TB, raw string, who ...string) (*box, error) {
	t.Helper()
	req := request(t, raw)
	if len(who) > 0 {
		req.Principal = person(who[0])
	}
	b := &box{t: t}
	_, err := r.Ask(req, b)
	synctest.Wait()
	return b, err
}

// open begins a session of the handshake era.
func (r *rig) open(t testing.TB) (conn upstream.Conn, reply, events *box) {
	t.Helper()
	reply, events = &box{t: t}, &box{t: t}
	conn, err := r.Open(request(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`), reply, events)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return conn, reply, events
}

var errUnclear = errors.New("HTTP 401")
