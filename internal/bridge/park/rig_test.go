package park

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/bridge/state"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// person is a principal.
type person string

func (p person) Key() string { return string(p) }

// rig is a bridge in front of a fake server, in a bubble.
type rig struct {
	t    *testing.T
	srv  *server
	park *Server
	cfg  Config
}

func newRig(t *testing.T, change func(*Config, *server)) *rig {
	t.Helper()
	ring, err := state.NewRing(bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	srv := &server{t: t, init: fullServer, refuse: make(map[string]bool)}
	cfg := Config{Name: "s", Server: srv, Ring: ring, Version: "9", Metrics: NewMetrics()}
	if change != nil {
		change(&cfg, srv)
	}
	return &rig{t: t, srv: srv, park: New(cfg), cfg: cfg}
}

// run runs a test in a bubble. At its end nothing may be left but what is named.
func run(t *testing.T, change func(*Config, *server), test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, change)
		test(r)
		r.park.Close()
		synctest.Wait()
		r.consistent()
	})
}

// consistent checks that a bridge that is closed holds nothing.
func (r *rig) consistent() {
	r.t.Helper()
	s := r.park
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.groups)+len(s.loners)+len(s.parked)+s.pinned+len(s.pinnedBy)+s.opened > 0 {
		r.t.Errorf("left: %d groups, %d loners, %d parked, %d pinned (%v), %d sessions", len(s.groups), len(s.loners), len(s.parked), s.pinned, s.pinnedBy, s.opened)
	}
	if p, n := r.metric("signalbox_parked_calls"), r.metric("signalbox_hidden_sessions"); p != 0 || n != 0 {
		r.t.Errorf("gauges: %v parked, %v sessions", p, n)
	}
	r.srv.mu.Lock()
	defer r.srv.mu.Unlock()
	for i, c := range r.srv.conns {
		if c.over() == nil {
			r.t.Errorf("session %d was not ended", i)
		}
	}
}

// metric is a value as it is scraped; with labels, that one whose values those are.
func (r *rig) metric(name string, labels ...string) int {
	r.t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(r.cfg.Metrics)
	all, err := reg.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, family := range all {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var have []string
			for _, l := range m.GetLabel() {
				have = append(have, l.GetValue())
			}
			if slices.Equal(have[:len(labels)], labels) {
				return int(m.GetGauge().GetValue() + m.GetCounter().GetValue())
			}
		}
	}
	return 0
}

func (r *rig) count(o outcome) int { return r.metric("signalbox_questions_total", string(o)) }

// reader is a client's sink.
type reader struct {
	t  *testing.T
	mu sync.Mutex
	// what came, in order; "END" or "END: reason" at last
	got  []string
	err  error
	call upstream.Call
}

func (c *reader) Deliver(f upstream.Frame) upstream.Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.got) > 0 && strings.HasPrefix(c.got[len(c.got)-1], "END") {
		return upstream.Closed
	}
	if _, err := wire.Parse(f.Data); err != nil {
		c.t.Errorf("a client got %s: %v", f.Data, err)
	}
	c.got = append(c.got, string(f.Data))
	return upstream.Taken
}

func (c *reader) End(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.got) > 0 && strings.HasPrefix(c.got[len(c.got)-1], "END") {
		c.t.Error("a sink was ended twice")
	}
	c.err = err
	if err == nil {
		c.got = append(c.got, "END")
	} else {
		c.got = append(c.got, "END: "+err.Error())
	}
}

// take returns what came since last asked.
func (c *reader) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = nil
	return got
}

// last is the reply, which came last of all before the end.
func (c *reader) last() string {
	c.t.Helper()
	got := c.take()
	if len(got) < 2 || got[len(got)-1] != "END" {
		c.t.Fatalf("no reply: %q", got)
	}
	return got[len(got)-2]
}

// reason is the reason of the error by which the call ended.
func (c *reader) reason() string {
	c.t.Helper()
	if got := c.take(); len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "END: ") {
		c.t.Fatalf("the call has not failed: %q", got)
	}
	e := upstream.RPCError(c.err)
	return fmt.Sprintf("%d %s", e.Code, e.Reason)
}

// client is who sends requests.
type sender struct {
	who    upstream.Principal
	caps   string // clientCapabilities
	meta   string // more members of _meta, each with a comma before it
	header http.Header
}

func (s sender) request(t testing.TB, id, method, params string) upstream.Request {
	t.Helper()
	if s.caps == "" {
		s.caps = "{}"
	}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + s.caps + s.meta + `}`
	if params != "" {
		params += ","
	}
	msg, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + meta + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	req := upstream.NewRequest(msg)
	req.Principal, req.Header = s.who, s.header
	return req
}

// ask sends a request that is taken.
func (r *rig) ask(s sender, id, method, params string) *reader {
	r.t.Helper()
	c, err := r.try(s, id, method, params)
	if err != nil {
		r.t.Fatalf("%s: %v", method, err)
	}
	synctest.Wait()
	return c
}

func (r *rig) try(s sender, id, method, params string) (*reader, error) {
	r.t.Helper()
	c := &reader{t: r.t}
	call, err := r.park.Ask(s.request(r.t, id, method, params), c)
	c.call = call
	return c, err
}

// refused sends a request that is refused at once.
func (r *rig) refused(s sender, id, method, params string) string {
	r.t.Helper()
	c, err := r.try(s, id, method, params)
	if err == nil {
		r.t.Fatalf("%s %s was taken", method, params)
	}
	if got := c.take(); len(got) > 0 {
		r.t.Errorf("the sink of a refused request got %q", got)
	}
	var elsewhere *upstream.Elsewhere
	if errors.As(err, &elsewhere) {
		return "elsewhere " + elsewhere.Replica
	}
	e := upstream.RPCError(err)
	return fmt.Sprintf("%d %s", e.Code, e.Reason)
}

// conns are the sessions at the server until now.
func (r *rig) conns(want int) []*conn {
	r.t.Helper()
	synctest.Wait()
	r.srv.mu.Lock()
	defer r.srv.mu.Unlock()
	if len(r.srv.conns) != want {
		r.t.Fatalf("%d sessions were opened, want %d", len(r.srv.conns), want)
	}
	return slices.Clone(r.srv.conns)
}

// leg is the newest call of a session that is none of Signalbox itself.
func (r *rig) leg(c *conn) *leg {
	r.t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range slices.Backward(c.calls) {
		switch k.req.Method {
		case mcp.LoggingSetLevel, mcp.ResourcesSubscribe, mcp.ResourcesUnsubscribe:
		default:
			return k
		}
	}
	r.t.Fatal("the server got no call")
	return nil
}

// at is the raw value under path in a message, "" for none.
func at(raw string, path ...string) string {
	v, ok := wire.Lookup([]byte(raw), path...)
	if !ok {
		return ""
	}
	return string(v.Of([]byte(raw)))
}

// keys are the keys of inputRequests in an input_required reply, by method.
func keys(raw string) map[string]string {
	all := make(map[string]string)
	b := []byte(raw)
	v, ok := wire.Lookup(b, "result", "inputRequests")
	if !ok {
		return all
	}
	for name, value := range wire.Members(b, v.Start) {
		key, _ := wire.Unquote(name.Of(b))
		all[strings.Trim(at(string(value.Of(b)), "method"), `"`)] = string(key)
	}
	return all
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprintf("%q", got), fmt.Sprintf("%q", want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}
