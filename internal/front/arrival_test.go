package front

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/observe"
)

// A call is measured from its arrival, however its answer goes out.
func TestAddedTimeIsMeasured(t *testing.T) {
	rec := observe.New()
	look := setup{manager: func(c *live.Config) { c.Observe = rec }, config: func(c *Config) { c.Timed = true }}
	inBubble(t, look, func(t *testing.T, r *rig) {
		measured := func() (calls, n int) {
			for _, b := range rec.Series(time.Now()) {
				calls += b.Calls
				n += b.Measured
			}
			return calls, n
		}
		session := r.open(rev)
		r.settle()
		calls, before := measured()
		if calls != 1 || before != 0 {
			t.Errorf("after initialize: %d calls, %d measured", calls, before)
		}
		for i, accept := range []string{"application/json", "text/event-stream", "application/json, text/event-stream"} {
			if got := r.do("POST", "/mcp", ping, session, "Accept: "+accept); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			r.settle()
			if calls, n := measured(); calls != 2+i || n != 1+i {
				t.Errorf("after %s: %d calls, %d measured", accept, calls, n)
			}
		}
	})
}

func TestRefusalsAreTold(t *testing.T) {
	var mu sync.Mutex
	var told []string
	tell := func(c *Config) {
		c.Metrics.Refused = func(reason string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, reason)
		}
	}
	inBubble(t, setup{config: tell}, func(t *testing.T, r *rig) {
		r.do("PUT", "/mcp", "")
		r.do("POST", "/mcp", "junk")
		r.do("GET", "/nowhere", "")
		r.do("POST", "/mcp", ping, "Mcp-Session-Id: gone")
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(told, " "); got != "method invalid_message path session_not_found" {
			t.Errorf("told of %s", got)
		}
	})
}
