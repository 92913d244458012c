package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Options of a Log. The zero value is the default.
type Options struct {
	Queue  int          // bytes of lines that may wait; default 1 MiB
	Stderr io.Writer    // for the path "-"; default os.Stderr
	Log    *slog.Logger // told of a file that cannot be written; default: nobody
}

// Log takes entries and writes them in the background. All methods may be called by
// several goroutines at once. A nil Log takes everything and writes nothing.
type Log struct {
	// static
	path  string // "" for a writer that is not ours to open
	limit int
	log   *slog.Logger
	wake  chan struct{} // holds one token while there is something to do
	done  chan struct{} // closed when run has ended

	mu      sync.Mutex
	waiting []byte    // lines
	spare   []byte    // the other buffer, while nothing is being written
	lost    uint64    // lines since waiting was full
	total   uint64    // lines ever lost
	next    io.Writer // to go on with; set by Reopen
	closing bool

	// owned by run
	out     io.Writer
	untold  uint64 // lines that are missing here
	torn    bool   // the last write ended within a line
	failing bool   // the last write failed
}

// errBlocked is what Close returns where a write does not come to its end.
var errBlocked = errors.New("audit: lines are left that could not be written in time")

const (
	defaultQueue = 1 << 20
	closeWait    = 2 * time.Second
)

// Open begins to write to the file at path, which is made if need be, readable by
// its owner only, and added to if it is there; "-" is stderr. An error says which
// file cannot be opened. Close ends it.
func Open(path string, opt Options) (*Log, error) {
	l := &Log{
		limit: opt.Queue, log: opt.Log, wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if l.limit <= 0 {
		l.limit = defaultQueue
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	switch {
	case path != "-":
		f, err := openFile(path)
		if err != nil {
			return nil, err
		}
		l.path, l.out = path, f
	case opt.Stderr != nil:
		l.out = opt.Stderr
	default:
		l.out = os.Stderr
	}
	go l.run() // ends with Close, which waits for it
	return l, nil
}

func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return f, nil
}

// Call writes down a call that is over. It never waits.
func (l *Log) Call(e Entry) {
	if l == nil {
		return
	}
	var room [768]byte
	l.add(e.append(room[:0]))
}

// Session writes down what happened to a session. It never waits.
func (l *Log) Session(e Event) {
	if l == nil {
		return
	}
	var room [768]byte
	l.add(e.append(room[:0]))
}

// Lost counts the lines that were lost since the start.
func (l *Log) Lost() uint64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// add puts a line in the queue, or counts it. Once one is lost so are those after
// it, until the queue is emptied: the count stands where the lines are missing.
func (l *Log) add(line []byte) {
	l.mu.Lock()
	switch {
	case l.closing || l.lost > 0 || len(l.waiting)+len(line) > l.limit:
		l.lost++
		l.total++
	default:
		l.waiting = append(l.waiting, line...)
	}
	l.mu.Unlock()
	l.stir()
}

func (l *Log) stir() {
	select {
	case l.wake <- struct{}{}:
	default: // it is going to look anyway
	}
}

// Reopen goes on in a file made anew at the same path, for a rotation that has
// renamed the old one: what waits is written to the new file. On an error the old
// file stays in use. On stderr it does nothing.
func (l *Log) Reopen() error {
	if l == nil || l.path == "" {
		return nil
	}
	f, err := openFile(l.path)
	if err != nil {
		return err
	}
	l.mu.Lock()
	before := l.next
	if l.closing {
		before = f
	} else {
		l.next = f
	}
	l.mu.Unlock()
	closeWriter(before)
	l.stir()
	return nil
}

// Close writes what waits and ends; it waits 2 s at most. What is added later is
// lost.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	l.stir()
	limit := time.NewTimer(closeWait)
	defer limit.Stop()
	select {
	case <-l.done:
		return nil
	case <-limit.C:
		return errBlocked
	}
}

// run writes until Close.
func (l *Log) run() {
	defer close(l.done)
	for range l.wake {
		for l.step() {
		}
		l.mu.Lock()
		over := l.closing
		l.mu.Unlock()
		if over {
			closeWriter(l.out)
			return
		}
	}
}

// step writes what waits. It returns false where there is nothing, or where it
// failed: then the next line is the occasion to try again.
func (l *Log) step() bool {
	l.mu.Lock()
	batch, lost, next := l.waiting, l.lost, l.next
	l.waiting, l.spare = l.spare[:0], nil
	l.lost, l.next = 0, nil
	l.mu.Unlock()
	if next != nil {
		closeWriter(l.out)
		l.out, l.torn = next, false
	}
	n, ok := 0, l.tell()
	if ok {
		n, ok = l.write(batch)
	}
	if !ok {
		l.missing(batch[n:])
	}
	l.untold += lost // after the lines that found room
	l.mu.Lock()
	l.spare = batch
	l.mu.Unlock()
	return ok && l.tell() && len(batch) > 0
}

// tell writes how many lines are missing here, if any are.
func (l *Log) tell() bool {
	if l.untold == 0 {
		return true
	}
	_, ok := l.write(appendLost(nil, time.Now(), l.untold))
	if ok {
		l.untold = 0
	}
	return ok
}

// write writes whole lines and returns how many of their bytes are written.
func (l *Log) write(lines []byte) (n int, ok bool) {
	var err error
	if l.torn { // end what is left of a line
		_, err = l.out.Write([]byte{'\n'})
		l.torn = err != nil
	}
	if err == nil {
		n, err = l.out.Write(lines)
		l.torn = err != nil && n > 0 && lines[n-1] != '\n'
	}
	if err != nil && !l.failing {
		l.log.Error("the audit log cannot be written; lines are lost until it can", "err", err)
	}
	l.failing = err != nil
	return n, !l.failing
}

// missing counts lines that were not written.
func (l *Log) missing(lines []byte) {
	n := uint64(bytes.Count(lines, []byte{'\n'}))
	l.untold += n
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total += n
}

// closeWriter closes files, not stderr.
func closeWriter(w io.Writer) {
	if f, ok := w.(*os.File); ok && f != os.Stderr {
		_ = f.Close() // every line is written already, or counted as lost
	}
}
