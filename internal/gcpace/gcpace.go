// Package gcpace spaces garbage collections out. A relay keeps little and
// allocates much: with a live heap of 4 MiB, Go would collect each time another
// 4 MiB had passed through, which for 64 KiB messages is every few dozen calls.
package gcpace

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Pacer keeps at least a given number of bytes between two collections.
type Pacer struct {
	slack   uint64
	percent int // what is set now
	sample  [1]metrics.Sample
}

const usual = 100 // Go's own default: the heap may double

// Start sets the pace for this process, unless its environment has a GOGC.
// It returns nil then.
func Start(slack uint64) *Pacer {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	p := newPacer(slack)
	p.adjust()
	p.watch()
	return p
}

func newPacer(slack uint64) *Pacer {
	p := &Pacer{slack: slack, percent: usual}
	p.sample[0].Name = "/gc/heap/live:bytes"
	return p
}

// mark is an object that nobody holds: its finalizer runs once after each
// collection, and puts out the next one.
type mark struct{ p *Pacer }

func (p *Pacer) watch() {
	runtime.SetFinalizer(&mark{p}, func(m *mark) {
		m.p.adjust()
		m.p.watch()
	})
}

// adjust is called by one goroutine at a time. Setting the percentage stops the
// world for a moment, so it is left where it is nearly right.
func (p *Pacer) adjust() {
	metrics.Read(p.sample[:])
	want := Percent(p.sample[0].Value.Uint64(), p.slack)
	if want > p.percent*5/4 || want < p.percent*4/5 {
		debug.SetGCPercent(want)
		p.percent = want
	}
}

// Percent is how much the heap may grow, in percent of what is live, so that
// it grows by slack bytes or doubles, whichever is more.
func Percent(live, slack uint64) int {
	const least = 1 << 20 // a heap that is all but empty
	return int(max(slack*100/max(live, least), usual))
}
