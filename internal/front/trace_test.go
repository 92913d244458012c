package front

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/cluster"
	"github.com/signalbox-mcp/signalbox/internal/trace"
	"github.com/signalbox-mcp/signalbox/internal/trace/tracetest"
)

// farPeer notes the headers of what is forwarded.
type farPeer struct {
	header http.Header
	err    error
}

func (p *farPeer) Forward(_ http.ResponseWriter, r *http.Request, _, _ string, body io.Reader) error {
	p.header = r.Header
	_, _ = io.Copy(io.Discard, body)
	return p.err
}

func (p *farPeer) Peers(context.Context) ([]cluster.Peer, error) { return nil, nil }

// The span of a call at its home is a child of the one that tells of the
// forwarding; the request that is forwarded stays the client's otherwise.
func TestForwardsAreTraced(t *testing.T) {
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	collector := tracetest.New(t)
	tracer, err := trace.New(trace.Config{Endpoint: collector.URL, Failed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	peer := new(farPeer)
	f := &Front{cfg: Config{Peers: peer, Trace: tracer}}
	forward := func(body string) string {
		r := httptest.NewRequest("POST", "/mcp", nil)
		r.Header.Set("Traceparent", caller)
		r.Header.Set("X-Other", "stays")
		if err := f.tryForward(httptest.NewRecorder(), r, "replica", []byte(body)); err != peer.err {
			t.Error(err)
		}
		if r.Header.Get("Traceparent") != caller || peer.header.Get("X-Other") != "stays" {
			t.Errorf("the client's headers are %v, the home's %v", r.Header, peer.header)
		}
		return peer.header.Get("Traceparent")
	}
	told := forward(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret"}}`)
	for _, other := range []string{`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, `[]`, ``} {
		if got := forward(other); got != caller {
			t.Errorf("%s: %s", other, got)
		}
	}
	peer.err = cluster.ErrPeer
	forward(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := collector.Spans() // the child ends first
	if len(spans) != 4 {
		t.Fatalf("spans: %+v", spans)
	}
	child, call := spans[0], spans[1]
	if child.Name != "forward" || call.Name != "tools/call" || child.Parent != call.ID || call.Parent != "b7ad6b7169203331" || child.Failed ||
		told != "00-"+call.Trace+"-"+child.ID+"-01" || child.Attributes["signalbox.replica"] != "replica" {
		t.Errorf("told %s, spans %+v", told, spans[:2])
	}
	if !spans[2].Failed || !spans[3].Failed || spans[3].Name != "other" || strings.Contains(collector.Raw(), "secret") {
		t.Errorf("where the home is away: %+v", spans[2:])
	}
}

func TestForwardWithoutTracerAllocatesNothing(t *testing.T) {
	f, r := new(Front), httptest.NewRequest("POST", "/mcp", nil)
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	if n := testing.AllocsPerRun(100, func() {
		same, done := f.traceForward(r, "home", body)
		if done(nil); same != r {
			t.Error("it is another request")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
