//go:build unix

package child

import (
	"fmt"
	"sync/atomic"
	"testing"
)

// counter is a Handler that counts bytes and rings at each target.
type counter struct {
	lines  atomic.Int64
	target atomic.Int64
	hit    chan struct{}
}

func (c *counter) Line([]byte) {
	if c.lines.Add(1) == c.target.Load() {
		c.hit <- struct{}{}
	}
}
func (c *counter) Oversize(_, _ []byte, _ int64) {}
func (c *counter) Exit(ExitInfo)                 {}

// BenchmarkEcho keeps a window of lines under way to a process that copies them back.
func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{200, 64 << 10} {
		for _, window := range []int{1, 64} {
			b.Run(fmt.Sprintf("%dB/window%d", size, window), func(b *testing.B) {
				s := newSupervisor(b, Options{})
				h := &counter{hit: make(chan struct{}, 1)}
				p, err := s.Start(shell("exec cat"), h)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(size * window))
				b.ReportAllocs()
				line := pattern(size)
				for b.Loop() {
					h.target.Add(int64(window))
					for range window {
						write(b, p, line)
					}
					<-h.hit
				}
				b.ReportMetric(float64(h.lines.Load())/b.Elapsed().Seconds(), "lines/s")
			})
		}
	}
}

func BenchmarkStartStop(b *testing.B) {
	s := newSupervisor(b, Options{})
	for b.Loop() {
		p, _ := start(b, s, shell("exec cat"))
		p.Stop()
		awaitDone(b, p)
	}
}
