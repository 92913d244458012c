package child

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestBaseEnv(t *testing.T) {
	environ := []string{"PATH=/bin", "HOME=/h", "USER=u", "LANG=C", "LC_ALL=C.UTF-8", "TMPDIR=/t", "TZ=UTC",
		"XDG_DATA_HOME=/x", "REDIS_URL=secret", "TOKEN=secret", "EMPTY=", "Path=/other", "=C:=C:\\", "nonsense", "LCX=1"}
	got := BaseEnv(environ, []string{"TOKEN", "UNSET", "EMPTY"}, map[string]string{"B": "2", "HOME": "/set", "A": "1"})
	want := []string{"A=1", "B=2", "EMPTY=", "HOME=/set", "LANG=C", "LC_ALL=C.UTF-8", "PATH=/bin", "TMPDIR=/t",
		"TOKEN=secret", "TZ=UTC", "USER=u", "XDG_DATA_HOME=/x"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := BaseEnv(nil, nil, nil); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestBaseEnvWindows(t *testing.T) {
	environ := []string{"Path=C:\\bin", "SystemRoot=C:\\Windows", "ProgramFiles(x86)=C:\\P", "ComSpec=cmd",
		"=C:=C:\\", "Secret=1", "token=t", "Temp=C:\\T"}
	got := baseEnv(envSource{environ, true}, []string{"TOKEN"}, map[string]string{"PATH": "C:\\mine"})
	want := []string{"ComSpec=cmd", "PATH=C:\\mine", "ProgramFiles(x86)=C:\\P", "SystemRoot=C:\\Windows",
		"Temp=C:\\T", "token=t"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestQueueBound(t *testing.T) {
	q := newQueue(1000)
	if _, err := q.push(make([]byte, 5000)); err != nil {
		t.Errorf("a line above the bound, queue empty: %v", err)
	}
	if _, err := q.push(nil); !errors.Is(err, ErrBusy) {
		t.Errorf("after it: %v", err)
	}
	q.take(nil)
	var tickets []*Ticket
	for {
		ticket, err := q.push(make([]byte, 36))
		if err != nil {
			break
		}
		tickets = append(tickets, ticket)
	}
	if len(tickets) != 10 {
		t.Errorf("%d lines of 36 bytes", len(tickets))
	}
	for _, ticket := range []*Ticket{tickets[9], tickets[0], tickets[5]} {
		if !q.withdraw(ticket) || q.withdraw(ticket) {
			t.Error("withdraw")
		}
	}
	if lines, open := q.take(nil); len(lines) != 7 || !open || q.bytes != 0 {
		t.Errorf("%d lines, %d bytes left", len(lines), q.bytes)
	}
	ticket, _ := q.push([]byte("x"))
	q.refuse()
	if _, err := q.push([]byte("y")); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	q.drop()
	if !q.withdraw(ticket) || q.withdraw(ticket) {
		t.Error("what was dropped will never be written")
	}
	if lines, open := q.take(nil); len(lines) != 0 || open {
		t.Error("sealed and empty")
	}
}

func TestQueueBatches(t *testing.T) {
	q := newQueue(100 << 20)
	for _, size := range []int{10, 10, largeLine, largeLine, 10} {
		if _, err := q.push(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		if _, err := q.push(make([]byte, largeLine-1)); err != nil {
			t.Fatal(err)
		}
	}
	var sizes []int
	for {
		lines, _ := q.take(nil)
		if len(lines) == 0 {
			break
		}
		total := 0
		for _, line := range lines {
			total += len(line) + 1
		}
		if total > batchBytes {
			t.Errorf("batch of %d bytes", total)
		}
		sizes = append(sizes, len(lines))
	}
	if want := []int{2, 1, 1, 16, 16, 16, 16, 16, 16, 5}; !slices.Equal(sizes, want) {
		t.Errorf("%v, want %v", sizes, want)
	}
}

func TestRing(t *testing.T) {
	var r ring
	r.write([]byte("first\nsec"))
	r.write([]byte("ond \xff"))
	if got := r.String(); got != "first\nsecond \uFFFD" {
		t.Errorf("%q", got)
	}
	for range 1000 {
		r.write([]byte(strings.Repeat("x", 99) + "\n"))
	}
	got := r.String()
	if len(got) > ringBytes || len(got) < ringBytes-100 || len(got)%100 != 0 {
		t.Errorf("%d bytes", len(got))
	}
	r.write(make([]byte, 10*ringBytes))
	if got := r.String(); len(got) != ringBytes {
		t.Errorf("%d bytes of one endless line", len(got))
	}
}

func TestLineLog(t *testing.T) {
	var log syncBuffer
	now := time.Unix(1000, 0)
	l := lineLog{
		log:    slog.New(slog.NewTextHandler(&log, nil)),
		bucket: bucket{now: func() time.Time { return now }},
	}
	l.write([]byte(strings.Repeat("y", 5000) + "\n\n\r\nnext "))
	l.write([]byte("part\r\n"))
	if got := strings.Count(log.String(), "y"); got != logLineBytes {
		t.Errorf("%d bytes of the long line", got)
	}
	wantContains(t, log.String(), `line="next part"`)
	for range 200 {
		l.write([]byte("z\n"))
	}
	if got := strings.Count(log.String(), "line=z"); got != logBurst-2 {
		t.Errorf("%d lines", got)
	}
	now = now.Add(time.Second)
	for range 30 {
		l.write([]byte("w\n"))
	}
	wantContains(t, log.String(), "count=102")
	if got := strings.Count(log.String(), "line=w"); got != logPerSecond {
		t.Errorf("%d lines a second later", got)
	}
	l.write([]byte("end"))
	l.end()
	wantContains(t, log.String(), "count=11")
}

func TestLoggerIsRequired(t *testing.T) {
	if _, err := NewSupervisor(Options{}); err == nil {
		t.Error("no error")
	}
	s := newSupervisor(t, Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if s.max != 128 {
		t.Errorf("limit %d", s.max)
	}
}
