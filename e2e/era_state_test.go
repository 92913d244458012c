package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// stateRig has two servers with the same names behind one Signalbox, and two principals.
type stateRig struct {
	name, text string // of the tool; the configuration
	keys       *keyFile
	ada, ben   *asker
	b          *box.Box
}

func newStateRig(t *testing.T) *stateRig {
	t.Helper()
	r := &stateRig{name: randomName(), keys: newKeyFile(t)}
	r.ada, r.ben = newAsker(t, "ada", r.keys.add("ada")), newAsker(t, "ben", r.keys.add("ben"))
	command := built(t, box.RandomNames)[0]
	r.text = "mcpServers:\n"
	for _, server := range []string{"a", "b"} {
		r.text += fmt.Sprintf("  %s: {command: %q, args: [-name, %q]}\n", server, command, r.name)
	}
	r.b = r.start(t)
	return r
}

func (r *stateRig) start(t *testing.T) *box.Box {
	t.Helper()
	return box.StartConfig(t, r.text, "--auth-keys", r.keys.path)
}

func endpointOf(b *box.Box, server string) string { return b.URL + "/servers/" + server + "/mcp" }

// misuse is a retry that must be refused.
type misuse struct {
	name             string
	who              *asker
	endpoint, method string
	params, state    string
}

// misuses are all ways to come back with a state that is not this call's.
func (r *stateRig) misuses(t *testing.T, params, state string) []misuse {
	right := misuse{who: r.ada, endpoint: endpointOf(r.b, "a"), method: "tools/call", params: params, state: state}
	var all []misuse
	add := func(name string, change func(*misuse)) {
		m := right
		m.name = name
		change(&m)
		all = append(all, m)
	}
	for name, cut := range map[string]string{
		"cut by one": state[:len(state)-1], "cut in half": state[:len(state)/2], "cut in front": state[1:],
		"empty": "", "longer": state + "A", "of somebody's own making": "mp1.k.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"with white space": state + " ", "twice": state + state,
	} {
		add(name, func(m *misuse) { m.state = cut })
	}
	for _, i := range []int{0, len(state) / 4, len(state) / 2, len(state) - 2, len(state) - 1} {
		other := byte('A')
		if state[i] == other {
			other = 'B'
		}
		add(fmt.Sprintf("changed at %d of %d", i, len(state)), func(m *misuse) { m.state = state[:i] + string(other) + state[i+1:] })
	}
	add("of another principal", func(m *misuse) { m.who = r.ben })
	add("of another tool", func(m *misuse) { m.params = strings.Replace(params, r.name, r.name+"-2", 1) })
	add("of another argument", func(m *misuse) { m.params = strings.Replace(params, `"tag":"t"`, `"tag":"u"`, 1) })
	add("of fewer arguments", func(m *misuse) { m.params = strings.Replace(params, `"tag":"t",`, ``, 1) })
	add("of another method", func(m *misuse) { m.method = "prompts/get" })
	add("of another server", func(m *misuse) { m.endpoint = endpointOf(r.b, "b") })
	other := r.start(t)
	add("of another Signalbox", func(m *misuse) { m.endpoint = endpointOf(other, "a") })
	return all
}

// TestEraState comes back with states that are not right: cut, changed, used up, of
// another principal, tool, argument, method, server or Signalbox. The answer is always
// the same, so it tells nothing, and the call that the state belongs to goes on.
func TestEraState(t *testing.T) {
	r := newStateRig(t)
	params := toolParams(r.name, "t", "elicitation,sampling")
	in := r.ada.mustPark(t, endpointOf(r.b, "a"), params)
	var first answer
	refused := func(name string, reply rawclient.Reply) {
		t.Helper()
		if reply.Status != http.StatusBadRequest || reply.Code() != -32602 {
			t.Errorf("%s: %v", name, reply)
			return
		}
		reply.Header.Del("Date")
		got := answer{reply.Status, reply.Header, reply.Body}
		if first.status == 0 {
			first = got
		}
		if !got.same(first) {
			t.Errorf("%s: %+v is another answer than %+v", name, got, first)
		}
	}
	for _, m := range r.misuses(t, params, *in.RequestState) {
		changed := in
		changed.RequestState = &m.state
		reply, err := m.who.post(t.Context(), m.endpoint, m.method, changed.Answers(m.params, m.who.answer))
		if err != nil {
			t.Fatal(err)
		}
		refused(m.name, reply)
	}
	if n := r.b.Metrics(t)[box.MetricParked]; n != 1 {
		t.Errorf("%v calls are parked, want the one", n)
	}
	reply, err := r.ada.retry(t.Context(), endpointOf(r.b, "a"), params, in)
	if err != nil {
		t.Fatal(err)
	}
	next, ok := reply.InputRequired()
	if !ok {
		t.Fatalf("the right retry: %v", reply)
	}
	replay := func(name string, in rawclient.InputRequired) {
		t.Helper()
		reply, err := r.ada.retry(t.Context(), endpointOf(r.b, "a"), params, in)
		if err != nil {
			t.Fatal(err)
		}
		refused(name, reply)
	}
	replay("used up in the first round", in)
	r.ada.mustFinish(t, r.name, "t", "elicitation,sampling", next, endpointOf(r.b, "a"))
	replay("used up in the last round", next)
	replay("of the first round, after the end", in)
	r.b.EventuallyMetric(t, box.MetricParked, 0)
}
