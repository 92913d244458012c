package front

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/upstream/process"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// proc is a server process without a process: lines in, lines out. It answers
// initialize, ping and echo by itself; other requests are the test's, see next.
type proc struct {
	h      child.Handler
	silent bool        // answer nothing
	gone   atomic.Bool // take nothing

	in   chan string       // lines written, for run
	got  chan wire.Message // requests for the test
	done chan struct{}

	last wire.Message // for the test

	say1 sync.Mutex // one caller of h at a time

	mu      sync.Mutex
	info    child.ExitInfo // of its end
	lines   []string       // everything written
	stopped bool
}

// procs starts them. It is the Config.Start of a process.Server.
type procs struct {
	silent bool  // of those started from now on
	fail   error // instead of a start

	mu   sync.Mutex
	list []*proc
	wait sync.WaitGroup
}

func (ps *procs) start(h child.Handler, _ upstream.Request) (process.Pipe, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.fail != nil {
		return nil, ps.fail
	}
	p := &proc{h: h, silent: ps.silent, in: make(chan string, 10000), got: make(chan wire.Message, 10000), done: make(chan struct{})}
	ps.list = append(ps.list, p)
	ps.wait.Go(p.run)
	return p, nil
}

func (ps *procs) count() int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return len(ps.list)
}

func (ps *procs) last() *proc {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.list[len(ps.list)-1]
}

func (p *proc) Write(line []byte) (*child.Ticket, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || p.gone.Load() {
		return nil, child.ErrGone
	}
	p.lines = append(p.lines, string(line))
	p.in <- string(line)
	return new(child.Ticket), nil
}

func (p *proc) Withdraw(*child.Ticket) bool { return false }
func (p *proc) Tail() string                { return "stderr says why" }
func (p *proc) Partial() string             { return "" }

// Stop ends it as a process that obeys.
func (p *proc) Stop() { p.stop() }

func (p *proc) stop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	p.stopped = true
	close(p.done)
	return true
}

// die ends it unasked.
func (p *proc) die(code int) {
	p.mu.Lock()
	p.info.Code = code // whoever tells of the end, run or this, tells the same
	p.mu.Unlock()
	if p.stop() {
		p.exit()
	}
}

func (p *proc) exit() {
	p.mu.Lock()
	info := p.info
	p.mu.Unlock()
	p.say1.Lock()
	defer p.say1.Unlock()
	if p.h != nil {
		p.h.Exit(info)
		p.h = nil
	}
}

func (p *proc) run() {
	for {
		select {
		case line := <-p.in:
			p.read(line)
		case <-p.done:
			p.exit()
			return
		}
	}
}

func (p *proc) read(line string) {
	msg, err := wire.Parse([]byte(line))
	if err != nil {
		panic(fmt.Sprintf("no message: %s: %v", line, err))
	}
	if msg.Kind != wire.Request {
		return
	}
	switch method := string(msg.MethodName()); {
	case p.silent:
		p.got <- msg
	case method == "initialize":
		version, _ := wire.Unquote(msg.Bytes(msg.P.ProtocolVersion))
		p.answer(msg, initResult(string(version)))
	case method == "server/discover" && strings.Contains(line, `clientInfo":{"name":"signalbox"`):
		p.answer(msg, "{}")
	case method == "ping":
		p.answer(msg, "{}")
	case method == "echo":
		p.answer(msg, string(msg.Bytes(msg.Params)))
	default:
		p.got <- msg
	}
}

func initResult(version string) string {
	return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"serverInfo":{"name":"s","version":"1"}}`, version)
}

// next is the next request that nobody answers but the test.
func (p *proc) next() wire.Message { return <-p.got }

func (p *proc) say(line string) {
	p.say1.Lock()
	defer p.say1.Unlock()
	if p.h != nil {
		p.h.Line([]byte(line))
	}
}

func (p *proc) answer(msg wire.Message, result string) {
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, msg.Bytes(msg.ID), result))
}

// oversize answers the last request with a line above the limit.
func (p *proc) oversize() {
	p.say1.Lock()
	defer p.say1.Unlock()
	head := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":"`, p.last.Bytes(p.last.ID))
	p.h.Oversize([]byte(head), []byte(`"}`), 1<<30)
}

// progress reports on a request that came with a token.
func (p *proc) progress(msg wire.Message, n int) {
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, msg.Bytes(msg.P.MetaToken), n))
}

// saw tells whether a line that holds text was written to it.
func (p *proc) saw(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.lines, func(l string) bool { return strings.Contains(l, text) })
}

func (p *proc) isStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

var errNoStart = &child.StartError{Server: "srv", Command: "nothing", Path: "PATH=/bin", Err: errors.New("executable file not found")}
