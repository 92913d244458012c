package front

import "testing"

// A request of the per-request era has no session, and is a call like any other.
func TestPerRequestCallsAreCounted(t *testing.T) {
	inBubble(t, setup{direct: true}, func(t *testing.T, r *rig) {
		if got := r.ask("7", "tools/list", ""); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		r.settle()
		for label, want := range map[string]float64{"per_request": 1, "handshake": 0} {
			if got := r.metric("signalbox_calls_total", label); got != want {
				t.Errorf("%v calls of the %s era, want %v", got, label, want)
			}
		}
		if n := r.metric("signalbox_sessions", ""); n != 0 {
			t.Errorf("%v sessions", n)
		}
	})
}
