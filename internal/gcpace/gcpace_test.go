package gcpace

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		live, slack uint64
		want        int
	}{
		{0, 16 << 20, 1600},
		{4 << 20, 16 << 20, 400},
		{16 << 20, 16 << 20, 100},
		{1 << 30, 16 << 20, 100},
	} {
		if got := Percent(c.live, c.slack); got != c.want {
			t.Errorf("Percent(%d, %d) = %d, want %d", c.live, c.slack, got, c.want)
		}
	}
}

func TestPacerFollowsTheHeap(t *testing.T) {
	before := debug.SetGCPercent(usual)
	defer debug.SetGCPercent(before)
	p := newPacer(64 << 20)
	runtime.GC()
	if p.adjust(); p.percent <= usual {
		t.Fatalf("a small heap is paced at %d percent", p.percent)
	}
	keep := make([]byte, 128<<20)
	for i := range keep {
		keep[i] = 1
	}
	runtime.GC()
	p.adjust()
	if p.percent != usual {
		t.Errorf("a large heap is paced at %d percent, want %d", p.percent, usual)
	}
	runtime.KeepAlive(keep)
}

func TestEnvironmentWins(t *testing.T) {
	t.Setenv("GOGC", "50")
	if Start(1<<20) != nil {
		t.Error("the pace was set although GOGC is")
	}
}
