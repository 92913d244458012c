package observe

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

var began = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

func TestTapeKeepsTheLast(t *testing.T) {
	var tape Tape
	if got := tape.Messages(); len(got) != 0 {
		t.Fatalf("a new tape has %d messages", len(got))
	}
	for i := range TapeLength + 10 {
		m := NewMessage(began, FromClient, wire.Request, mcp.Ping, i)
		m.SetID(fmt.Appendf(nil, "%d", i))
		tape.Add(&m)
		if got := tape.Messages(); got[len(got)-1].Size() != i || got[0].Size() != max(0, i+1-TapeLength) {
			t.Fatalf("after %d: from %d to %d", i, got[0].Size(), got[len(got)-1].Size())
		}
	}
	if got := tape.Messages(); len(got) != TapeLength || got[0].ID() != "10" {
		t.Errorf("%d messages, the first is %s", len(got), got[0].ID())
	}
}

func TestMessage(t *testing.T) {
	m := NewMessage(began, ToClient, wire.Response, mcp.Ping, 1<<40)
	if m.Size() != 1<<32-1 || m.Reason() != "" || m.Method() != "ping" || !m.Time().Equal(began) {
		t.Errorf("%d bytes, %q, %s, %v", m.Size(), m.Reason(), m.Method(), m.Time())
	}
	if m.SetReason("timeout"); m.Reason() != "timeout" || m.Method() != "ping" {
		t.Errorf("%q, %s", m.Reason(), m.Method())
	}
}

func TestFullTapeDoesNotAllocate(t *testing.T) {
	var tape Tape
	id := []byte(`"an id"`)
	add := func() {
		m := NewMessage(began, FromClient, wire.Request, mcp.ToolsCall, 7)
		m.SetID(id)
		tape.Add(&m)
	}
	for range TapeLength {
		add()
	}
	if n := testing.AllocsPerRun(1000, add); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
	r := New()
	if n := testing.AllocsPerRun(1000, func() { r.Called(began); r.Added(began, time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

func TestTextsOfPeersAreCut(t *testing.T) {
	var m Message
	for in, want := range map[string]string{
		`7`: `7`, `"` + strings.Repeat("x", 40) + `"`: `"` + strings.Repeat("x", 31),
		`"` + strings.Repeat("ä", 20) + `"`: `"` + strings.Repeat("ä", 15),
	} {
		if m.SetID([]byte(in)); m.ID() != want {
			t.Errorf("%s is kept as %s, want %s", in, m.ID(), want)
		}
	}
	for in, want := range map[string]string{"": "", "x/y": "x/y", "a" + strings.Repeat("ä", 40): "a" + strings.Repeat("ä", 31)} {
		m := NewMessage(began, ToClient, wire.Request, mcp.Other, 1)
		if m.SetMethod([]byte(in)); m.Method() != want {
			t.Errorf("method: %q is kept as %q, want %q", in, m.Method(), want)
		}
	}
}

func TestSeries(t *testing.T) {
	r := New()
	for i := range 100 {
		r.Called(began)
		r.Added(began, time.Duration(i+1)*time.Microsecond)
	}
	r.Added(began, 20*time.Millisecond)
	r.Called(began.Add(BucketWidth))
	got := r.Series(began.Add(BucketWidth))
	if len(got) != Buckets {
		t.Fatalf("%d buckets", len(got))
	}
	now, before := got[Buckets-1], got[Buckets-2]
	if now.Calls != 1 || now.Measured != 0 || now.Median != 0 || !now.Start.Equal(began.Add(BucketWidth)) {
		t.Errorf("now: %+v", now)
	}
	if before.Calls != 100 || before.Measured != 101 || before.Max != 20*time.Millisecond {
		t.Errorf("before: %+v", before)
	}
	if m, p := before.Median, before.P99; m < 51*time.Microsecond || m > 64*time.Microsecond || p < 100*time.Microsecond || p > 125*time.Microsecond {
		t.Errorf("median %v, 99th percentile %v", m, p)
	}
	for _, b := range got[:Buckets-2] {
		if b.Calls != 0 {
			t.Errorf("%v has %d calls", b.Start, b.Calls)
		}
	}
	if sum := total(r.Series(began.Add(Buckets * BucketWidth))); sum != 1 { // the first bucket has left
		t.Errorf("%d calls after 15 minutes", sum)
	}
	r.Called(began.Add((Buckets + 1) * BucketWidth)) // in the place of the first
	if sum := total(r.Series(began.Add((Buckets + 1) * BucketWidth))); sum != 1 {
		t.Errorf("%d calls after the ring came round", sum)
	}
}

func total(list []Bucket) (sum int) {
	for _, b := range list {
		sum += b.Calls
	}
	return sum
}

// Each time lies within its class, and a class is a quarter wide at most.
func TestClasses(t *testing.T) {
	for d := time.Microsecond; d < time.Minute; d += d/97 + time.Microsecond {
		d = d.Truncate(time.Microsecond)
		up := upper(classOf(d))
		if up < d || d > 8*time.Microsecond && float64(up) > 1.26*float64(d) {
			t.Fatalf("%v is in the class up to %v", d, up)
		}
	}
	if classOf(0) != 0 || classOf(-1) != 0 || classOf(1<<62) != classes-1 {
		t.Errorf("ends: %d, %d, %d", classOf(0), classOf(-1), classOf(1<<62))
	}
}

func TestIncidents(t *testing.T) {
	r := New()
	for i := range MaxIncidents + 5 {
		r.Refused(began.Add(time.Duration(i)*time.Second), Incident{Reason: "accept", Detail: fmt.Sprint(i)})
	}
	got := r.Incidents()
	if len(got) != MaxIncidents || got[0].Detail != fmt.Sprint(MaxIncidents+4) || got[MaxIncidents-1].Detail != "5" {
		t.Fatalf("%d, from %s to %s", len(got), got[0].Detail, got[len(got)-1].Detail)
	}
	for i := range 3 {
		r.Dropped(began.Add(time.Duration(i)*time.Minute), Incident{Reason: "noise", Server: "s"})
	}
	r.Refused(began, Incident{Reason: "noise", Server: "s"})
	got = r.Incidents()
	if d := got[1]; got[0].What != Refused || d.What != Dropped || d.Count != 3 || !d.First.Equal(began) || !d.Last.Equal(began.Add(2*time.Minute)) {
		t.Errorf("equal ones: %+v", got[:2])
	}
}

func TestNilRecorder(t *testing.T) {
	var r *Recorder
	r.Called(began)
	r.Added(began, 1)
	r.Refused(began, Incident{})
	r.Dropped(began, Incident{})
	if r.On() || r.Series(began) != nil || r.Incidents() != nil {
		t.Error("it keeps something")
	}
}

func TestRecorderAtOnce(t *testing.T) {
	r := New()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 2000 {
				now := began.Add(time.Duration(i/200) * BucketWidth)
				r.Called(now)
				r.Added(now, time.Duration(i))
				r.Dropped(now, Incident{Reason: fmt.Sprint(i % 3)})
			}
		})
	}
	wg.Wait()
	if sum := total(r.Series(began.Add(9 * BucketWidth))); sum != 16000 {
		t.Errorf("%d of 16000 calls are counted", sum)
	}
	count := 0
	for _, i := range r.Incidents() {
		count += i.Count
	}
	if count < MaxIncidents {
		t.Errorf("%d incidents", count)
	}
}
