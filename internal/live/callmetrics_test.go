package live

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// measurement is one series: of a counter the value is its sum.
type measurement struct {
	count uint64
	sum   float64
}

// series are those of a name by their label values, joined by spaces.
func (r *rig) series(name string) map[string]measurement {
	r.t.Helper()
	families, err := r.reg.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	all := make(map[string]measurement)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() { // sorted by name
				labels = append(labels, l.GetValue())
			}
			h := m.GetHistogram()
			all[strings.Join(labels, " ")] = measurement{h.GetSampleCount() + uint64(m.GetCounter().GetValue()), h.GetSampleSum()}
		}
	}
	return all
}

func (r *rig) count(name, labels string) uint64 { return r.series(name)[labels].count }

func callOf(tool string) upstream.Request {
	return message(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":` + string(wire.AppendQuote(nil, tool)) + `}}`)
}

// ask makes a call and answers it.
func (r *rig) ask(s *Session, req upstream.Request, answer func(*fakeCall)) {
	r.t.Helper()
	r.srv.onCall = answer
	rd, err := s.Call(TakesBoth, []upstream.Request{req})
	if err != nil {
		r.t.Fatal(err)
	}
	drain(rd)
	rd.Close()
}

func ok(k *fakeCall) { k.answer(`{"content":[]}`) }

func TestCallsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		s, _ := r.open()
		req := request(2, "tools/list")
		size := len(req.Msg.Raw)
		r.ask(s, req, func(k *fakeCall) { time.Sleep(3 * time.Second); k.answer(`{"tools":[]}`) })
		r.ask(s, request(3, "x/unknown"), (*fakeCall).refuse)
		r.ask(s, request(4, "x/also"), func(k *fakeCall) { k.fail(upstream.ErrTimeout) })
		list := r.series("signalbox_call_duration_seconds")["tools/list srv "]
		if list.count != 1 || list.sum != 3 {
			t.Errorf("duration: %v", list)
		}
		if in := r.series("signalbox_call_request_bytes")["tools/list srv "]; in.sum != float64(size) {
			t.Errorf("request: %v, want %d bytes", in, size)
		}
		if out := r.series("signalbox_call_response_bytes")["tools/list srv "]; out.sum != float64(len(`{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`)) {
			t.Errorf("response: %v", out)
		}
		if n := r.count("signalbox_call_duration_seconds", "other srv "); n != 2 {
			t.Errorf("%d calls of unknown methods", n)
		}
		for labels, want := range map[string]uint64{"handshake ok srv": 2, "handshake error srv": 1, "handshake timeout srv": 1, "per_request ok srv": 0} {
			if got := r.count("signalbox_calls_total", labels); got != want {
				t.Errorf("%s: %d calls, want %d", labels, got, want)
			}
		}
	})
}

// What a client makes up is no label: a tool has its own series once its server
// has answered for it, and there is a bound even so.
func TestToolsAreNamedByTheirServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		s, _ := r.open()
		for i := range 200 {
			r.ask(s, callOf(fmt.Sprint("made up ", i)), (*fakeCall).refuse)
			r.ask(s, callOf(fmt.Sprint("made up as well ", i)), func(k *fakeCall) { k.answer(`{"content":[{"type":"text","text":"no such tool"}],"isError":true}`) })
			r.ask(s, callOf(fmt.Sprint("late ", i)), func(k *fakeCall) { k.fail(upstream.ErrTimeout) })
		}
		r.ask(s, callOf(strings.Repeat("x", maxToolName+1)), ok)
		r.ask(s, callOf(otherTools), ok)
		r.ask(s, callOf(""), ok)
		r.ask(s, callOf("big"), func(k *fakeCall) { k.answer(`{"text":"` + strings.Repeat("x", maxNaming) + `"}`) })
		if got := r.series("signalbox_call_duration_seconds"); len(got) != 2 || r.count("signalbox_call_duration_seconds", "tools/call srv other") != 604 {
			t.Fatalf("series: %v", got)
		}
		for range 3 {
			r.ask(s, callOf("read"), ok)
		}
		r.ask(s, callOf("read"), (*fakeCall).refuse) // it is known now
		if n := r.count("signalbox_call_duration_seconds", "tools/call srv read"); n != 4 {
			t.Errorf("%d calls of the tool read", n)
		}
		for i := range 2 * maxTools {
			r.ask(s, callOf(fmt.Sprint("real ", i)), ok)
		}
		if got := len(r.series("signalbox_call_duration_seconds")); got != maxTools+2 {
			t.Errorf("%d series, want those of %d tools, of the others, and of initialize", got, maxTools)
		}
	})
}

// The same of 10,000 sessions at 20 servers.
func TestSeriesAreBounded(t *testing.T) {
	m := NewMetrics()
	for i := range 10_000 {
		b := &Backend{Name: fmt.Sprint("server ", i%20)}
		of := m.of(b)
		m.opened(b.Name, legacy)
		for k := range 3 {
			of.name(fmt.Sprintf("tool %d of %d", k, i))
		}
	}
	if len(m.servers) != 20 || m.named != maxAllTools {
		t.Errorf("%d servers with %d tools, want 20 with %d", len(m.servers), m.named, maxAllTools)
	}
}

// A call costs the same with its tool named and without.
func TestMeasuringDoesNotAllocate(t *testing.T) {
	m := NewMetrics()
	of := m.of(&Backend{Name: "srv"})
	of.name("read")
	c := &callSink{st: &Stream{s: &Session{m: &Manager{cfg: Config{Metrics: m}}, backend: &Backend{Name: "srv"}}}}
	req := callOf("read")
	if n := testing.AllocsPerRun(100, func() {
		c.measure(&req)
		c.answeredLocked([]byte(`{"jsonrpc":"2.0","id":2,"result":{}}`))
		c.count(c.size, "ok", time.Now())
	}); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}
