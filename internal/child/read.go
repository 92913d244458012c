package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	outGrace = 2 * time.Second        // for the end of stdout, once the process has exited
	errGrace = 250 * time.Millisecond // for the end of stderr, so that Tail is complete at Exit
)

// partial is the unfinished line, for those who ask while the reader reads.
type partial struct {
	mu   sync.Mutex
	text []byte
}

func (p *partial) set(text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = append(p.text[:0], text...)
}

func (p *partial) get() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.ToValidUTF8(string(p.text), "\uFFFD")
}

// Partial returns the text that the process has written to stdout without ending
// the line, as valid UTF-8: its last 1 KiB.
func (p *Process) Partial() string { return p.partial.get() }

// read is the reader goroutine: the only one that reads stdout and calls the
// handler. It ends at the end of stdout, or at the deadline that live sets.
func (p *Process) read() {
	p.pump()
	p.stdout.Close()
	close(p.outEnded)
	<-p.verdict
	if !p.info.StdoutClosed {
		p.await(p.errEnded, errGrace)
	}
	p.handler.Exit(p.info)
}

func (p *Process) pump() {
	f := framer{max: p.spec.MaxLine, line: p.handler.Line, oversize: p.handler.Oversize, buffers: p.spec.Buffers}
	for {
		n, err := p.stdout.Read(f.space())
		if n > 0 {
			f.filled(n)
			p.partial.set(f.partial())
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
				p.outErr = fmt.Errorf("read its output: %w", err)
			}
			return
		}
	}
}
