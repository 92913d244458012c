package policy

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func TestNoRulesNoWrapper(t *testing.T) {
	for _, r := range []*Rules{nil, {Shared: true}} {
		x := newRig(t, r, &fakeServer{})
		if x.conn != upstream.Conn(x.inner) || x.inner.reply != upstream.Sink(&x.init) || x.inner.events != upstream.Sink(&x.events) {
			t.Error("the server's own Conn or the client's own sinks are wrapped")
		}
	}
}

func TestNoSieveNoSink(t *testing.T) {
	x := newRig(t, &Rules{Tools: NewFilter(only("ok"), nil), Shared: true}, &fakeServer{})
	if x.inner.reply != upstream.Sink(&x.init) || x.inner.events != upstream.Sink(&x.events) {
		t.Error("the sinks of the session are wrapped")
	}
	to, _ := x.call(message("tools/call", `{"name":"ok"}`))
	if x.inner.sinks[0] != upstream.Sink(to) {
		t.Error("the sink of a call is wrapped")
	}
}

type listener struct{ on *bool }

func (l listener) Listen(on bool) { *l.on = on }

type movable struct{}

func (movable) Moves() bool           { return false }
func (movable) State() upstream.State { return upstream.State{Session: "s"} }
func (movable) Adopt(upstream.State)  {}
func (movable) Detach(error)          {}

func TestOptionalMethodsAreThoseOfTheInnerConn(t *testing.T) {
	var on bool
	for _, c := range []struct {
		name             string
		make             func(*fakeConn) upstream.Conn
		listens, hasData bool
	}{
		{"none", nil, false, false},
		{"listener", func(c *fakeConn) upstream.Conn {
			return struct {
				*fakeConn
				listener
			}{c, listener{&on}}
		}, true, false},
		{"movable", func(c *fakeConn) upstream.Conn {
			return struct {
				*fakeConn
				movable
			}{c, movable{}}
		}, false, true},
		{"both", func(c *fakeConn) upstream.Conn {
			return struct {
				*fakeConn
				listener
				movable
			}{c, listener{&on}, movable{}}
		}, true, true},
	} {
		x := newRig(t, rules(), &fakeServer{make: c.make})
		l, listens := x.conn.(upstream.Listener)
		s, hasState := x.conn.(upstream.Movable)
		if listens != c.listens || hasState != c.hasData {
			t.Errorf("%s: Listener %v, Movable %v", c.name, listens, hasState)
		}
		on = false
		if listens {
			if l.Listen(true); !on {
				t.Errorf("%s: Listen does not reach the inner Conn", c.name)
			}
		}
		if hasState && s.State().Session != "s" {
			t.Errorf("%s: State is not that of the inner Conn", c.name)
		}
		if _, err := x.call(message("tools/call", `{"name":"no"}`)); err == nil {
			t.Errorf("%s: a refused call arrived", c.name)
		}
		if x.conn.End(upstream.ErrCancelled); x.inner.ended != upstream.ErrCancelled {
			t.Errorf("%s: End does not reach the inner Conn", c.name)
		}
	}
}

func TestOpenFails(t *testing.T) {
	broken := errors.New("broken")
	init := request(t, `{"jsonrpc":"2.0","id":0,"method":"initialize"}`)
	server := &fakeServer{}
	w := Wrap(server, Config{Name: "srv", Rules: func(upstream.Request) (*Rules, error) { return nil, broken }, Metrics: NewMetrics()})
	if _, err := w.Open(init, nil, nil); err != broken || len(server.conns) != 0 {
		t.Errorf("%v, %d connections, where the rules cannot be told", err, len(server.conns))
	}
	w = Wrap(&fakeServer{err: broken}, Config{Name: "srv", Rules: func(upstream.Request) (*Rules, error) { return rules(), nil }, Metrics: NewMetrics()})
	if conn, err := w.Open(init, nil, nil); err != broken || conn != nil {
		t.Errorf("%v, %v, where the server cannot be opened", conn, err)
	}
	w = Wrap(server, Config{Metrics: NewMetrics()})
	if w.Close(); !server.closed {
		t.Error("Close does not reach the server")
	}
}

func TestListsAreFilteredOnTheWayBack(t *testing.T) {
	x := newRig(t, rules(), &fakeServer{})
	to, _ := x.call(message("tools/list", `{}`))
	s := x.inner.sinks[0]
	progress := upstream.Frame{Data: []byte(`{"jsonrpc":"2.0","method":"notifications/progress"}`), Method: mcp.NotifProgress, Relation: upstream.Own}
	s.Deliver(progress)
	reply := upstream.Frame{Data: []byte(response(`{"tools":[{"name":"no"},{"name":"ok"}]}`)), Method: mcp.ToolsList, Relation: upstream.Reply}
	if v := s.Deliver(reply); v != upstream.Taken {
		t.Errorf("verdict %d", v)
	}
	s.End(nil)
	got := to.data()
	if len(got) != 2 || got[0] != string(progress.Data) || got[1] != response(`{"tools":[{"name":"ok"}]}`) || len(to.ends) != 1 || to.ends[0] != nil {
		t.Errorf("got %q, ended %v", got, to.ends)
	}
	if to.frames[1].Method != mcp.ToolsList || to.frames[1].Relation != upstream.Reply {
		t.Errorf("%+v", to.frames[1])
	}
	to.verdict = upstream.Closed
	if v := s.Deliver(reply); v != upstream.Closed {
		t.Errorf("verdict %d of a sink that has ended", v)
	}
}

func TestUnreadableListBecomesAnError(t *testing.T) {
	x := newRig(t, rules(), &fakeServer{})
	to, _ := x.call(`{"jsonrpc":"2.0","method":"tools/list","id":"\u0061b"}`)
	x.inner.sinks[0].Deliver(upstream.Frame{Data: []byte(`{"jsonrpc":"2.0","id":"ab","result":{"tools":[{"name":"ok"},{"title":"no"}]}}`), Relation: upstream.Reply})
	want := `{"jsonrpc":"2.0","id":"\u0061b","error":{"code":-32603,"message":"the server's list cannot be read, so it cannot be filtered","data":{"source":"signalbox","reason":"policy_list"}}}`
	if got := to.data(); len(got) != 1 || got[0] != want {
		t.Errorf("got %q", got)
	}
	if x.refusals(kindList) != 1 || !contains(&x.log, `reason="tools[1]: no string name"`) {
		t.Errorf("%d refused, log %s", x.refusals(kindList), &x.log)
	}
}

func TestUpdatesOfHiddenResourcesAreDropped(t *testing.T) {
	update := func(params string) upstream.Frame {
		return upstream.Frame{Data: []byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":` + params + `}`),
			Method: mcp.NotifResourcesUpdated, Relation: upstream.Loose}
	}
	for _, filter := range []*Filter{NewFilter(only("ok:*"), nil), NewFilter(nil, only("no:*"))} {
		testUpdates(t, &Rules{Tools: rules().Tools, Resources: filter}, update)
	}
}

func testUpdates(t *testing.T, r *Rules, update func(params string) upstream.Frame) {
	x := newRig(t, r, &fakeServer{})
	call, _ := x.call(message("tools/call", `{"name":"ok"}`))
	list, _ := x.call(message("tools/list", `{}`))
	for name, c := range map[string]struct {
		sink   upstream.Sink
		client *client
	}{"events": {x.inner.events, &x.events}, "initialize": {x.inner.reply, &x.init}, "call": {x.inner.sinks[0], call}, "list": {x.inner.sinks[1], list}} {
		c.client.verdict = upstream.NoTaker
		for _, params := range []string{`{"uri":"no:a"}`, `{"uri":"n\u006f:a"}`, `{}`, `{"uri":1}`, `{"uri":"ok:a","uri":"ok:b"}`} {
			if v := c.sink.Deliver(update(params)); v != upstream.Taken {
				t.Errorf("%s: verdict %d of a hidden update %s: somebody else would be offered it", name, v, params)
			}
		}
		if len(c.client.frames) != 0 {
			t.Errorf("%s: got %q", name, c.client.data())
		}
		if v := c.sink.Deliver(update(`{"uri":"ok:a"}`)); v != upstream.NoTaker || len(c.client.frames) != 1 {
			t.Errorf("%s: verdict %d, %q", name, v, c.client.data())
		}
		other := upstream.Frame{Data: []byte(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`), Method: mcp.NotifResourcesListChanged, Relation: upstream.Loose}
		c.sink.Deliver(other)
		if len(c.client.frames) != 2 || string(c.client.frames[1].Data) != string(other.Data) {
			t.Errorf("%s: another notification does not pass", name)
		}
	}
	if x.refusals(kindUpdate) != 20 {
		t.Errorf("%d dropped updates are counted", x.refusals(kindUpdate))
	}
}

// tenant is a principal, who may use the tool of that name.
type tenant string

func (t tenant) Key() string { return string(t) }

// tenants are rules for each; they allow all to nobody in particular.
func tenants(req upstream.Request) (*Rules, error) {
	who, ok := req.Principal.(tenant)
	if !ok {
		return nil, nil
	}
	if who == "broken" {
		return nil, errors.New("no rules")
	}
	return &Rules{Tools: NewFilter(only(string(who)), nil), Resources: NewFilter(only(string(who)+":*"), nil)}, nil
}

// The rules are those of who sends the message: a new token may allow less.
func TestRulesFollowTheSenderOfEachMessage(t *testing.T) {
	server := &fakeServer{}
	w := Wrap(server, Config{Name: "srv", Rules: tenants, Metrics: NewMetrics(), Log: slog.New(slog.DiscardHandler)})
	by := func(raw, who string) upstream.Request {
		req := request(t, raw)
		req.Principal = tenant(who)
		return req
	}
	events := &client{verdict: upstream.Taken}
	conn, err := w.Open(by(`{"jsonrpc":"2.0","id":0,"method":"initialize"}`, "a"), &client{}, events)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who, tool string
		allowed   bool
	}{{"a", "a", true}, {"a", "b", false}, {"b", "a", false}, {"b", "b", true}, {"broken", "a", false}} {
		_, err := conn.Start(by(message("tools/call", `{"name":"`+c.tool+`"}`), c.who), &client{})
		if (err == nil) != c.allowed {
			t.Errorf("%s calls %s: %v", c.who, c.tool, err)
		}
	}
	update := func(uri string) upstream.Frame {
		return upstream.Frame{Data: []byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`),
			Method: mcp.NotifResourcesUpdated, Relation: upstream.Loose}
	}
	server.conns[0].events.Deliver(update("a:1")) // the last message was b's
	server.conns[0].events.Deliver(update("b:1"))
	if got := events.data(); len(got) != 1 || !strings.Contains(got[0], "b:1") {
		t.Errorf("updates %q", got)
	}
}

// movableServer is a fakeServer whose sessions can move.
type movableServer struct {
	*fakeServer
	fail error
}

func (s movableServer) Attach(_ upstream.State, events upstream.Sink) (upstream.Conn, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	c := &fakeConn{events: events}
	s.conns = append(s.conns, c)
	return struct {
		*fakeConn
		movable
	}{c, movable{}}, nil
}

type keeper struct {
	*client
	changed int
}

func (k *keeper) Changed(func(*upstream.State)) { k.changed++ }
func (k *keeper) Renewed(_, now upstream.State) (upstream.State, error) {
	now.Session += " kept"
	return now, nil
}

// A session that is gone on with is under the rules too, and shows nothing
// before its client has said who it is.
func TestAttachedSessionsAreGuarded(t *testing.T) {
	server := movableServer{fakeServer: &fakeServer{}}
	w := Wrap(server, Config{Name: "srv", Rules: tenants, Metrics: NewMetrics(), Log: slog.New(slog.DiscardHandler)})
	if _, ok := Wrap(server.fakeServer, Config{Metrics: NewMetrics()}).(upstream.Attacher); ok {
		t.Error("sessions can be gone on with that cannot move")
	}
	to := &keeper{client: &client{verdict: upstream.Taken}}
	conn, err := w.(upstream.Attacher).Attach(upstream.State{}, to)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := conn.(upstream.Movable); !ok {
		t.Error("it can move no more")
	}
	inner := server.conns[0].events
	f := upstream.Frame{Data: []byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1"}}`), Method: mcp.NotifResourcesUpdated, Relation: upstream.Loose}
	inner.Deliver(f)
	if got := to.data(); len(got) != 0 {
		t.Errorf("shown to nobody: %q", got)
	}
	req := request(t, message("tools/call", `{"name":"b"}`))
	req.Principal = tenant("a")
	if _, err := conn.Start(req, &client{}); err == nil {
		t.Error("a tool of another tenant was called")
	}
	inner.Deliver(f)
	if got := to.data(); len(got) != 1 {
		t.Errorf("updates %q", got)
	}
	inner.(upstream.Keeper).Changed(nil)
	if st, _ := inner.(upstream.Keeper).Renewed(upstream.State{}, upstream.State{Session: "s"}); to.changed != 1 || st.Session != "s kept" {
		t.Errorf("the keeper of the state hears nothing: %d, %+v", to.changed, st)
	}
	server.fail = upstream.ErrLost
	w = Wrap(server, Config{Name: "srv", Rules: tenants, Metrics: NewMetrics()})
	if _, err := w.(upstream.Attacher).Attach(upstream.State{}, to); err != upstream.ErrLost {
		t.Errorf("got %v", err)
	}
}
