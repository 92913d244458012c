package process

import (
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
)

// fakeProcess is a Pipe in memory. Like the real one it speaks from a goroutine
// of its own, refuses writes from Stop on, and ends with Exit, exactly once.
type fakeProcess struct {
	handler  child.Handler
	tail     string        // stderr
	partial  string        // stdout without a line end
	stopTime time.Duration // from Stop to Exit
	done     chan struct{} // closed at the end of run

	mu      sync.Mutex
	news    sync.Cond // for the goroutine: say or gone has changed
	in      []string  // lines that the process has read
	stalled bool      // it reads nothing: lines stay in queue
	queue   []queued
	bound   int  // lines in queue; 0: no bound
	gone    bool // refuses writes
	exiting bool // Exit is certain
	stops   int
	say     []func() // what the goroutine does next
	react   func(p *fakeProcess, line string)
}

type queued struct {
	ticket *child.Ticket
	line   string
}

func (p *fakeProcess) run() {
	defer close(p.done)
	for {
		p.mu.Lock()
		for len(p.say) == 0 {
			p.news.Wait()
		}
		next := p.say[0]
		p.say = p.say[1:]
		p.mu.Unlock()
		if next == nil {
			return
		}
		next()
	}
}

// do has the process's goroutine do something after all that it has to do.
func (p *fakeProcess) do(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say = append(p.say, f)
	p.news.Signal()
}

// says writes a line to stdout.
func (p *fakeProcess) says(line string) {
	p.do(func() { p.handler.Line([]byte(line)) })
}

// exits ends the process of itself.
func (p *fakeProcess) exits(info child.ExitInfo) {
	p.mu.Lock()
	first := !p.exiting
	p.gone, p.exiting = true, true
	p.queue = nil
	p.mu.Unlock()
	if first {
		p.do(func() { p.handler.Exit(info) })
		p.do(nil)
	}
}

// dies makes writes fail, but Exit is not called yet.
func (p *fakeProcess) dies() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
}

func (p *fakeProcess) Write(line []byte) (*child.Ticket, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ticket := new(child.Ticket)
	switch {
	case p.gone:
		return nil, child.ErrGone
	case p.stalled && p.bound > 0 && len(p.queue) >= p.bound:
		return nil, child.ErrBusy
	case p.stalled:
		p.queue = append(p.queue, queued{ticket, string(line)})
	default:
		p.readLocked(string(line))
	}
	return ticket, nil
}

func (p *fakeProcess) readLocked(line string) {
	p.in = append(p.in, line)
	if p.react != nil {
		p.say = append(p.say, func() { p.react(p, line) })
		p.news.Signal()
	}
}

func (p *fakeProcess) Withdraw(t *child.Ticket) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, q := range p.queue {
		if q.ticket == t {
			p.queue = append(p.queue[:i:i], p.queue[i+1:]...)
			return true
		}
	}
	return false
}

// stall makes the process read nothing, until resume.
func (p *fakeProcess) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = true
}

func (p *fakeProcess) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = false
	for _, q := range p.queue {
		p.readLocked(q.line)
	}
	p.queue = nil
}

func (p *fakeProcess) Stop() {
	p.mu.Lock()
	p.stops++
	first := !p.exiting
	p.gone, p.exiting = true, true
	p.mu.Unlock()
	if !first {
		return
	}
	p.do(func() {
		time.Sleep(p.stopTime)
		p.handler.Exit(child.ExitInfo{Code: 0})
	})
	p.do(nil)
}

func (p *fakeProcess) Tail() string    { return p.tail }
func (p *fakeProcess) Partial() string { return p.partial }

// got returns what the process has read since the last call.
func (p *fakeProcess) got() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.in
	p.in = nil
	return in
}

func (p *fakeProcess) stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stops > 0
}
