package proc

import (
	"os"
	"testing"
	"time"
)

func TestStartStop(t *testing.T) {
	p, err := Start([]string{"sh", "-c", "echo ready; while :; do :; done & wait"}, t.TempDir()+"/log")
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for cpu := time.Duration(0); cpu < 5*tick; time.Sleep(tick) {
		if cpu, err = CPU(p.PID()); err != nil || time.Now().After(deadline) {
			t.Fatalf("the descendant's time is not counted: %v, %v", cpu, err)
		}
	}
	if rss, peak, err := Memory(p.PID()); err != nil || rss <= 0 || peak < rss {
		t.Errorf("memory %d, peak %d, %v", rss, peak, err)
	}
	p.Stop(5 * time.Second)
	if ended, _ := p.Ended(); !ended || p.Log() != "ready" {
		t.Errorf("ended %v, log %q", ended, p.Log())
	}
}

func TestResetPeak(t *testing.T) {
	waste := make([]byte, 64<<20)
	for i := 0; i < len(waste); i += os.Getpagesize() {
		waste[i] = 1
	}
	if err := ResetPeak(os.Getpid()); err != nil {
		t.Skip("not offered here:", err)
	}
	rss, peak, err := Memory(os.Getpid())
	if err != nil || peak-rss > 32<<20 {
		t.Errorf("memory %d, peak %d, %v", rss, peak, err)
	}
}
