package stdio

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// writer is the one goroutine that writes to the client. put never blocks; a
// client that does not read is cut off at a bound.
type writer struct {
	// static
	out   io.Writer
	bound int
	wake  chan struct{} // one token: there is something to look at
	done  chan struct{} // closed when nothing will be written any more

	mu     sync.Mutex
	queue  [][]byte
	bytes  int // in queue
	closed bool
	err    error
	dead   bool // done is closed
}

const (
	// queueBytes waits for a client beside one message of the largest size.
	queueBytes = 64 << 20
	batchBytes = 64 << 10
	// lastWrite bounds the wait for a client to take what is left at the end.
	lastWrite = 2 * time.Second
)

func newWriter(out io.Writer, maxMessage int) *writer {
	return &writer{out: out, bound: queueBytes + maxMessage, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

var errNotRead = errors.New("the client does not read its messages")

// put queues one message. Raw line ends in it become spaces.
func (w *writer) put(b []byte) upstream.Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.closed {
		return upstream.Closed
	}
	if w.bytes+len(b) > w.bound {
		w.failLocked(errNotRead)
		return upstream.Closed
	}
	w.bytes += len(b)
	w.queue = append(w.queue, b)
	w.signal()
	return upstream.Taken
}

func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// failLocked ends the writing, though a Write may hang in the client's pipe.
func (w *writer) failLocked(err error) {
	if w.err == nil {
		w.err = err
	}
	w.queue = nil
	w.endLocked()
}

func (w *writer) endLocked() {
	if !w.dead {
		w.dead = true
		close(w.done)
	}
}

func (w *writer) run() {
	var buf []byte
	for {
		w.mu.Lock()
		batch := w.batchLocked()
		if len(batch) == 0 && w.closed {
			w.endLocked()
		}
		dead := w.dead
		w.mu.Unlock()
		if dead {
			return
		}
		if len(batch) == 0 {
			<-w.wake
			continue
		}
		buf = appendLines(buf[:0], batch)
		if _, err := w.out.Write(buf); err != nil {
			w.mu.Lock()
			w.failLocked(err)
			w.mu.Unlock()
			return
		}
		if cap(buf) > 1<<20 {
			buf = nil
		}
	}
}

// batchLocked takes what one Write shall carry: one message, or several small
// ones.
func (w *writer) batchLocked() [][]byte {
	n, size := 0, 0
	for n < len(w.queue) && (n == 0 || size+len(w.queue[n]) <= batchBytes) {
		size += len(w.queue[n])
		n++
	}
	batch := w.queue[:n:n]
	w.queue = w.queue[n:]
	w.bytes -= size
	return batch
}

func appendLines(buf []byte, queue [][]byte) []byte {
	for _, b := range queue {
		at := len(buf)
		buf = append(buf, b...)
		wire.OneLine(buf[at:])
		buf = append(buf, '\n')
	}
	return buf
}

// close waits until what is queued is written, within bounds, and returns what
// went wrong.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.signal()
	timer := time.NewTimer(lastWrite)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dead {
		w.failLocked(errNotRead)
	}
	return w.err
}
