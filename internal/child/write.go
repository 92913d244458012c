package child

import (
	"fmt"
	"runtime"
	"time"
)

// Write queues one line for the process's stdin; the writer adds the LF. It never
// blocks and takes ownership of the bytes, which must hold no LF. It returns ErrBusy
// when the queue is full, and ErrGone when the process has ended or is being stopped.
func (p *Process) Write(line []byte) (*Ticket, error) { return p.queue.push(line) }

// Withdraw takes a line back. It returns true if the line was still queued: then
// it will never be written.
func (p *Process) Withdraw(t *Ticket) bool { return p.queue.withdraw(t) }

// feed is the writer goroutine: the only one that writes to stdin, and the one
// that closes it. It ends when the queue is sealed and empty, or at the first
// error; the deadline that giveUpInput sets is one.
func (p *Process) feed() {
	defer close(p.inEnded)
	defer p.stdin.Close()
	var lines [][]byte
	var buf []byte
	for {
		var open bool
		lines, open = p.queue.take(lines[:0])
		if len(lines) == 0 {
			if !open {
				return
			}
			if cap(buf) > largeLine {
				buf = nil // an idle process should cost little
			}
			<-p.queue.wake
			// Those who are about to write go first: the process is then woken once
			// for all their lines. Without anybody else this costs nothing.
			runtime.Gosched()
			runtime.Gosched()
			continue
		}
		var err error
		buf, err = p.writeBatch(lines, buf)
		for _, line := range lines {
			p.spec.Buffers.Put(line)
		}
		clear(lines)
		if err != nil {
			p.inErr = fmt.Errorf("write to its input: %w", err)
			p.queue.drop()
			return
		}
	}
}

func (p *Process) writeBatch(lines [][]byte, buf []byte) ([]byte, error) {
	if len(lines) == 1 && len(lines[0]) >= largeLine {
		return buf, writeLine(p.stdin, lines[0])
	}
	buf = buf[:0]
	for _, line := range lines {
		buf = append(buf, line...)
		buf = append(buf, '\n')
	}
	_, err := p.stdin.Write(buf)
	return buf, err
}

// giveUpInput makes a write that the process does not read fail, and drops what waits.
func (p *Process) giveUpInput() {
	p.queue.drop()
	// Fails where pipes know no deadlines (Windows); there the end of the job ends the write.
	_ = p.stdin.SetWriteDeadline(time.Unix(1, 0))
}
