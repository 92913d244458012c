package live

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// askedServer ends each request of the per-request era with an error.
type askedServer struct {
	fakeServer
	end error
}

func (s *askedServer) Ask(_ upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	sink.End(s.end)
	return nothingOpen{}, nil
}

type nothingOpen struct{}

func (nothingOpen) Cancel(error) {}

// A request of the per-request era has no session to lose: that of the bridge is
// nobody's but Signalbox's, and its loss an error as any other.
func TestAskKnowsNoSession(t *testing.T) {
	r := newRig(t, nil)
	b := &Backend{Name: "srv", Server: &askedServer{end: fmt.Errorf("tools/call: %w", upstream.ErrLost)}}
	for _, takes := range []Takes{TakesBoth, TakesJSON, TakesSSE} {
		rd, err := r.m.Ask(b, "ann", takes, request(1, "tools/call"))
		if err != nil {
			t.Fatal(err)
		}
		events, over, err := rd.Take(nil)
		if err != nil || !over || len(events) != 1 || !strings.Contains(string(events[0].Data), `"code":-32603`) {
			t.Errorf("%d events, %v, %v", len(events), over, err)
		}
		rd.Close()
	}
}
