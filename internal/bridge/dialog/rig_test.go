package dialog

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// fakeAsker is a server of the per-request era that does what a test says. It notes
// what happens in the rig's journal.
type fakeAsker struct {
	x *rig

	mu     sync.Mutex
	err    error // of the next Ask
	within func(*asked)
	asks   []*asked
}

// asked is one request that reached the server.
type asked struct {
	a    *fakeAsker
	n    int // from 1
	req  upstream.Request
	raw  string
	sink upstream.Sink

	mu   sync.Mutex
	over bool
}

func (a *fakeAsker) Ask(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	a.mu.Lock()
	if err := a.err; err != nil {
		a.err = nil
		a.mu.Unlock()
		return nil, err
	}
	k := &asked{a: a, n: len(a.asks) + 1, req: req, raw: string(req.Msg.Raw), sink: sink}
	a.asks = append(a.asks, k)
	within := a.within
	a.mu.Unlock()
	if req.Inline {
		a.x.t.Error("a request that is Inline")
	}
	a.x.note("server %d %s", k.n, k.raw)
	clear(req.Msg.Raw) // it is the receiver's
	if within != nil {
		within(k)
	}
	return k, nil
}

// Cancel implements upstream.Call.
func (k *asked) Cancel(reason error) {
	if k.take() {
		k.a.x.note("server %d cancelled: %v", k.n, reason)
		k.sink.End(reason)
	}
}

func (k *asked) take() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.over
	k.over = true
	return !was
}

// id is the raw token of the request.
func (k *asked) id() string {
	s, _ := wire.Lookup([]byte(k.raw), "id")
	return string(s.Of([]byte(k.raw)))
}

// says delivers a message on the request's stream; a response ends it.
func (k *asked) says(raw string) {
	msg, err := wire.Parse([]byte(raw))
	if err != nil {
		k.a.x.t.Errorf("%v: %s", err, raw)
		return
	}
	f := upstream.Frame{Data: msg.Raw, Method: upstream.NewRequest(msg).Method, Relation: upstream.Own}
	if msg.Kind != wire.Response {
		k.sink.Deliver(f)
		return
	}
	if k.take() {
		f.Relation, f.Address = upstream.Reply, fmt.Sprintf("http://server:%d", k.n)
		k.sink.Deliver(f)
		k.sink.End(nil)
	}
}

// result is says of a result of this request.
func (k *asked) result(raw string) {
	k.says(`{"jsonrpc":"2.0","id":` + k.id() + `,"result":` + raw + `}`)
}

// ends is the end of a request without a response.
func (k *asked) ends(err error) {
	if k.take() {
		k.sink.End(err)
	}
}

// ask is the nth request that reached the server.
func (a *fakeAsker) ask(n int) *asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n < 1 || n > len(a.asks) {
		a.x.t.Fatalf("%d requests reached the server, none is number %d", len(a.asks), n)
	}
	return a.asks[n-1]
}

func (a *fakeAsker) last() *asked {
	a.mu.Lock()
	n := len(a.asks)
	a.mu.Unlock()
	return a.ask(n)
}

// sink is one of the client's. It fails the test where the contract of
// upstream.Sink is broken, and takes the mutex of the conn, which nobody may hold who
// calls a sink.
type sink struct {
	x    *rig
	name string
	call bool

	mu      sync.Mutex
	reads   bool
	replied bool
	ends    int
	err     error
	got     []string
}

var relations = map[upstream.Relation]string{
	upstream.Reply: "reply", upstream.Own: "own", upstream.Loose: "loose", upstream.Waiting: "waiting",
}

func (s *sink) Deliver(f upstream.Frame) upstream.Verdict {
	s.x.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := wire.Parse(f.Data); err != nil {
		s.x.t.Errorf("%s: %v: %s", s.name, err, f.Data)
	}
	switch {
	case f.Relation == upstream.Reply:
		if !s.call || s.replied || s.ends > 0 {
			s.x.t.Errorf("%s: reply %s; replied before: %v, ended: %d", s.name, f.Data, s.replied, s.ends)
		}
		s.replied = true
	case s.ends > 0:
		return upstream.Closed
	case s.call && f.Relation == upstream.Waiting, f.Relation != upstream.Waiting && !s.reads:
		return upstream.NoTaker
	}
	s.got = append(s.got, string(f.Data))
	if s.x.heard != nil && f.Relation != upstream.Reply {
		s.x.heard(string(f.Data))
	}
	s.x.note("%s %s %s", s.name, relations[f.Relation], f.Data)
	clear(f.Data)
	return upstream.Taken
}

func (s *sink) End(err error) {
	s.x.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends++
	s.err = err
	if s.ends > 1 || s.call && s.replied != (err == nil) {
		s.x.t.Errorf("%s: end number %d with %v; replied: %v", s.name, s.ends, err, s.replied)
	}
	if err != nil {
		e := upstream.RPCError(err)
		s.x.note("%s end %d %s: %s", s.name, e.Code, e.Reason, e.Message)
	}
}

func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends
}

func (s *sink) setReads(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = on
}

// rig is one session between a client and a fake server.
type rig struct {
	t      *testing.T
	asker  *fakeAsker
	srv    *Server
	conn   *conn
	events *sink

	mu      sync.Mutex
	journal []string
	deaf    bool // new calls have no reader
	sinks   []*sink
	calls   map[string]upstream.Call // by raw id, the last one
	heard   func(data string)        // is called with what a client is sent; nil: nobody cares
}

func newRig(t *testing.T, change func(*Config)) *rig {
	x := &rig{t: t, calls: make(map[string]upstream.Call)}
	x.asker = &fakeAsker{x: x}
	cfg := Config{
		Name: "srv", Asker: x.asker, Question: 10 * time.Minute, CallLimit: 2 * time.Hour, Version: "1.2.3",
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	x.srv = New(cfg)
	x.events = &sink{x: x, name: "events", reads: true}
	return x
}

func (x *rig) note(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.journal = append(x.journal, fmt.Sprintf(format, args...))
}

// told returns what has happened since the last time.
func (x *rig) told() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	j := x.journal
	x.journal = nil
	return j
}

// look takes the mutex of the conn and compares its tables.
func (x *rig) look() {
	if c := x.conn; c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.checkLocked(x.t)
	}
}

func (c *conn) checkLocked(t *testing.T) {
	open := 0
	for k := range c.calls {
		if k.over != nil {
			t.Error("a call that is over is in the table")
		}
		for _, q := range k.asked {
			if !q.done && c.questions[q.key] == q {
				open++
			}
		}
	}
	if open != len(c.questions) {
		t.Errorf("%d questions in the table, %d of open calls", len(c.questions), open)
	}
}

func request(t *testing.T, raw string) upstream.Request {
	t.Helper()
	msg, err := wire.Parse([]byte(raw))
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return upstream.NewRequest(msg)
}

// open begins the session.
func (x *rig) open(raw string) *sink {
	x.t.Helper()
	reply := x.newSink("initialize")
	conn, err := x.srv.Open(request(x.t, raw), reply, x.events)
	if err != nil {
		x.note("open refused: %v", err)
		return reply
	}
	x.conn = conn.(*connOf)
	return reply
}

type connOf = conn

func (x *rig) newSink(name string) *sink {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := &sink{x: x, name: name, call: true, reads: !x.deaf}
	x.sinks = append(x.sinks, s)
	return s
}

// send is a message of the client.
func (x *rig) send(raw string) *sink {
	x.t.Helper()
	req := request(x.t, raw)
	if req.Msg.Kind != wire.Request {
		if err := x.conn.Send(req); err != nil {
			x.note("client refused: %v", err)
		}
		return nil
	}
	id := string(req.Msg.Bytes(req.Msg.ID))
	s := x.newSink("call " + id)
	call, err := x.conn.Start(req, s)
	if err != nil {
		e := upstream.RPCError(err)
		x.note("call %s refused %d %s: %s", id, e.Code, e.Reason, e.Message)
		s.mu.Lock()
		s.ends++
		s.mu.Unlock()
		return s
	}
	x.mu.Lock()
	x.calls[id] = call
	x.mu.Unlock()
	return s
}

// finish ends the session and checks that nothing of it is left.
func (x *rig) finish() {
	x.t.Helper()
	x.srv.Close()
	c := x.conn
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.listening
	if len(c.calls)+len(c.questions)+len(l.waiting) != 0 || l.cur != nil || l.next != nil {
		x.t.Errorf("left after the end: %d calls, %d questions, %d waiting, listens %v %v", len(c.calls), len(c.questions), len(l.waiting), l.cur, l.next)
	}
	for _, s := range x.sinks {
		if s.count() != 1 {
			x.t.Errorf("%s: ended %d times", s.name, s.count())
		}
	}
	if x.events.count() != 1 {
		x.t.Errorf("events: ended %d times", x.events.count())
	}
	x.srv.mu.Lock()
	defer x.srv.mu.Unlock()
	if len(x.srv.conns) != 0 {
		x.t.Errorf("%d sessions are left", len(x.srv.conns))
	}
	for _, k := range x.asker.asks {
		if k.take() {
			x.t.Errorf("request %d is open at the server still: %s", k.n, k.raw)
		}
	}
}

// begin opens a session of the revision with these capabilities on both sides.
func (x *rig) begin(revision, client, server string) {
	x.t.Helper()
	x.open(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + revision +
		`","capabilities":` + client + `,"clientInfo":{"name":"c","version":"1"}}}`)
	x.asker.ask(1).result(discovery(server))
	x.told()
}

func discovery(capabilities string) string {
	return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":` + capabilities +
		`,"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2"}}}`
}

// want compares what has happened since the last time with lines that tell of it;
// a line may be the beginning of what happened, marked by "...".
func (x *rig) want(lines ...string) {
	x.t.Helper()
	got := x.told()
	same := len(got) == len(lines)
	for i := 0; same && i < len(lines); i++ {
		head, open := strings.CutSuffix(lines[i], "...")
		same = got[i] == lines[i] || open && strings.HasPrefix(got[i], head)
	}
	if !same {
		x.t.Fatalf("happened:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(lines, "\n\t"))
	}
}
