package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// gate is a writer that waits where it is told to, and can fail.
type gate struct {
	entered chan struct{} // a value for each write that waits
	mu      sync.Mutex
	closed  chan struct{} // a write waits for it; nil: none does
	fail    error
	short   int // bytes of a failed write that arrive
	got     bytes.Buffer
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 100)} }

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	wait := g.closed
	g.mu.Unlock()
	if wait != nil {
		g.entered <- struct{}{}
		<-wait
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fail != nil {
		n := min(g.short, len(p))
		g.got.Write(p[:n])
		return n, g.fail
	}
	return g.got.Write(p)
}

func (g *gate) shut() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	wait := make(chan struct{})
	g.closed = wait
	return func() {
		g.mu.Lock()
		g.closed = nil
		g.mu.Unlock()
		close(wait)
	}
}

func (g *gate) setFail(err error, short int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail, g.short = err, short
}

func (g *gate) lines(t *testing.T) (all []map[string]any) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	return parse(t, g.got.String())
}

func parse(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		m := map[string]any{}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		all = append(all, m)
	}
	return all
}

func open(t *testing.T, path string, opt Options) *Log {
	t.Helper()
	l, err := Open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var call = Entry{Time: time.Unix(1767323045, 678e6), Principal: "key ci", Server: "s", Session: "01234567", Method: "tools/call", Tool: "t", Outcome: OK, Duration: 1234567, Bytes: 99}

// TestBlockedWriter: nobody waits for a writer that does not write, and what was lost
// is told where it is missing.
func TestBlockedWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		release := g.shut()
		l := open(t, "-", Options{Stderr: g, Queue: 1000})
		l.Call(call)
		<-g.entered // it is being written
		for range 50 {
			l.Call(call) // would block for ever, if it could
		}
		lost := l.Lost()
		if lost == 0 || lost >= 50 {
			t.Errorf("%d lines are lost", lost)
		}
		release()
		synctest.Wait()
		l.Session(Event{Time: call.Time, What: "ended", Session: "01234567"})
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		lines := g.lines(t)
		if want := 51 - int(lost) + 2; len(lines) != want {
			t.Fatalf("%d lines, want %d", len(lines), want)
		}
		if told := lines[len(lines)-2]["lost"]; told != float64(lost) {
			t.Errorf("told of %v, lost %d", told, lost)
		}
		if last := lines[len(lines)-1]["event"]; last != "ended" {
			t.Errorf("the last line is %v", last)
		}
	})
}

// TestWriterThatFails: a full disk loses lines, is told of once, and leaves no line torn
// in two.
func TestWriterThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		var told bytes.Buffer
		l := open(t, "-", Options{Stderr: g, Log: slog.New(slog.NewTextHandler(&told, nil))})
		l.Call(call)
		synctest.Wait()
		g.setFail(errors.New("disk full"), 10)
		for range 5 {
			l.Call(call)
			synctest.Wait()
			g.setFail(errors.New("disk full"), 0)
		}
		g.setFail(nil, 0)
		l.Call(call)
		synctest.Wait()
		l.Call(call)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		text := g.got.String()
		if n := strings.Count(told.String(), "cannot be written"); n != 1 {
			t.Errorf("told %d times: %s", n, told.String())
		}
		// The torn line stands alone; all others are whole.
		lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		if len(lines) != 5 || len(lines[1]) != 11 || l.Lost() != 5 {
			t.Fatalf("lost %d, lines %q", l.Lost(), lines)
		}
		whole := parse(t, lines[0]+lines[2]+lines[3]+lines[4])
		if whole[1]["lost"] != 5.0 || whole[2]["event"] != "call" {
			t.Errorf("lines %v", whole)
		}
	})
}

// TestCloseIsBounded: a writer that hangs for ever does not hold up the end.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		release := g.shut()
		l := open(t, "-", Options{Stderr: g})
		l.Call(call)
		<-g.entered
		began := time.Now()
		if err := l.Close(); !errors.Is(err, errBlocked) || time.Since(began) != closeWait {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		l.Call(call)
		if l.Lost() != 1 {
			t.Error("a line after Close is not counted")
		}
		release()
	})
}

// TestRotation: no line is lost over it, whoever writes meanwhile.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, Options{})
	const writers, each, rotations = 4, 500, 5
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for range each {
				l.Call(call)
			}
		})
	}
	files := []string{path}
	for i := range rotations {
		old := path + "." + string(rune('1'+i))
		if err := os.Rename(path, old); err != nil {
			t.Fatal(err)
		}
		files = append(files, old)
		if err := l.Reopen(); err != nil {
			t.Fatal(err)
		}
	}
	writing.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		n += len(parse(t, string(text)))
		if info, err := os.Stat(f); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is readable by others: %v, %v", f, info.Mode(), err)
		}
	}
	if n != writers*each || l.Lost() != 0 {
		t.Errorf("%d lines of %d, %d lost", n, writers*each, l.Lost())
	}
}

// TestReopenThatFails: the old file stays in use.
func TestReopenThatFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l := open(t, filepath.Join(dir, "audit"), Options{})
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err == nil {
		t.Error("no error")
	}
	l.Call(call)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir+".old", "audit")); err != nil || len(parse(t, string(text))) != 1 {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := Open(filepath.Join(dir, "audit"), Options{}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("opened in a folder that is not there: %v", err)
	}
}

// TestNoLog: a nil Log is one that is off.
func TestNoLog(t *testing.T) {
	var l *Log
	l.Call(call)
	l.Session(Event{})
	if err := errors.Join(l.Reopen(), l.Close()); err != nil || l.Lost() != 0 {
		t.Error(err)
	}
}
