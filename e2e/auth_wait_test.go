package e2e

import (
	"regexp"
	"testing"
	"time"
)

var keyFileBad = regexp.MustCompile(`the key file is not taken`)

// eventuallyWithin polls for a state that a promise has a time for and that announces
// itself by no event.
func eventuallyWithin(t *testing.T, limit time.Duration, what, want string, now func() string) {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		got := now()
		if got == want {
			t.Logf("%s after %v", what, time.Since(began).Round(time.Millisecond))
			return
		}
		if time.Since(began) > limit {
			t.Fatalf("%s: got %s for %v, want %s", what, got, limit, want)
		}
		<-tick.C
	}
}
