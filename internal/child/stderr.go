package child

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	ringBytes    = 64 << 10
	logLineBytes = 2 << 10
	logPerSecond = 20
	logBurst     = 100
)

// Tail returns the last lines of stderr, at most 64 KiB and as valid UTF-8, and
// after them the unfinished line of stdout, if there is one: a program that asks a
// question and waits shows here.
func (p *Process) Tail() string {
	tail := p.ring.String()
	if asked := p.Partial(); asked != "" {
		if tail != "" && !strings.HasSuffix(tail, "\n") {
			tail += "\n"
		}
		tail += asked
	}
	return tail
}

// drain is the stderr goroutine. It reads whatever happens to the lines, because a
// process blocks when its stderr is full.
func (p *Process) drain() {
	defer close(p.errEnded)
	defer p.stderr.Close()
	lines := lineLog{log: p.log, bucket: bucket{now: time.Now}}
	defer lines.end()
	buf := make([]byte, 8<<10)
	for {
		n, err := p.stderr.Read(buf)
		p.ring.write(buf[:n])
		lines.write(buf[:n])
		if err != nil {
			return
		}
	}
}

// ring keeps the last ringBytes written to it.
type ring struct {
	mu      sync.Mutex
	buf     []byte // grows to ringBytes, then is written around
	next    int    // where the next byte goes once buf is full
	wrapped bool   // something has been overwritten
}

func (r *ring) write(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(b) > ringBytes {
		b = b[len(b)-ringBytes:]
		r.wrapped = true
	}
	if room := ringBytes - len(r.buf); room > 0 {
		n := min(room, len(b))
		r.buf = append(r.buf, b[:n]...)
		b = b[n:]
	}
	for len(b) > 0 {
		n := copy(r.buf[r.next:], b)
		b = b[n:]
		r.next = (r.next + n) % ringBytes
		r.wrapped = true
	}
}

// String returns what is kept; a first line that lost its beginning is left out.
func (r *ring) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := string(r.buf[r.next:]) + string(r.buf[:r.next])
	if r.wrapped {
		if _, rest, ok := strings.Cut(text, "\n"); ok {
			text = rest
		}
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// lineLog logs each line of stderr, cut short and rate-limited. Owned by drain.
type lineLog struct {
	log        *slog.Logger
	bucket     bucket
	line       []byte // the first logLineBytes of the unfinished line
	suppressed int
}

func (l *lineLog) write(b []byte) {
	for len(b) > 0 {
		text, rest, ended := bytes.Cut(b, []byte{'\n'})
		l.line = append(l.line, text[:min(len(text), logLineBytes-len(l.line))]...)
		if ended {
			l.flush()
		}
		b = rest
	}
}

func (l *lineLog) flush() {
	line := strings.TrimRight(strings.ToValidUTF8(string(l.line), "\uFFFD"), " \t\r")
	l.line = l.line[:0]
	if line == "" {
		return
	}
	if !l.bucket.take() {
		l.suppressed++
		return
	}
	l.report()
	l.log.Info("stderr", "line", line)
}

func (l *lineLog) report() {
	if l.suppressed > 0 {
		l.log.Info("stderr lines suppressed", "count", l.suppressed)
		l.suppressed = 0
	}
}

func (l *lineLog) end() {
	l.flush()
	l.report()
}

// bucket is a token bucket: logBurst at once, logPerSecond in the long run.
type bucket struct {
	now    func() time.Time
	last   time.Time
	tokens float64
}

func (b *bucket) take() bool {
	now := b.now()
	if b.last.IsZero() {
		b.tokens = logBurst
	} else {
		b.tokens = min(logBurst, b.tokens+now.Sub(b.last).Seconds()*logPerSecond)
	}
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
