//go:build unix

package redis

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/session/redis/redistest"
	"github.com/signalbox-mcp/signalbox/internal/session/sessiontest"
)

func TestStore(t *testing.T) {
	servers := []struct {
		name string
		args []string
	}{
		{"tracking", nil},
		{"no tracking", noTracking},
	}
	for _, srv := range servers {
		t.Run(srv.name, func(t *testing.T) {
			server := redistest.Start(t, srv.args...)
			raw := plain(t, server.Addr)
			sessiontest.Run(t, func(t *testing.T) session.Store {
				return open(t, server, Config{})
			}, sessiontest.Options{
				Advance: func(t *testing.T, s session.Store, d time.Duration) { advance(t, raw, s.(*Store), d) },
				Another: func(t *testing.T, _ session.Store) session.Store { return open(t, server, Config{}) },
			})
		})
	}
}

// advance makes every key end earlier by d, which is what it sees of time.
func advance(t *testing.T, raw rueidis.Client, s *Store, d time.Duration) {
	t.Helper()
	keys, err := raw.Do(t.Context(), raw.B().Keys().Pattern("*:{*").Build()).AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		m := do(t, raw, "PTTL", k)
		ms, err := m.AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		if ms > 0 {
			do(t, raw, "PEXPIRE", k, strconv.FormatInt(max(ms-d.Milliseconds(), 0), 10))
		}
	}
	settle(t, s)
}

// calls returns how many commands the server has run, and how many of them are
// scripts: those are what a Store sends.
func calls(t *testing.T, raw rueidis.Client) (all, scripts int) {
	t.Helper()
	m := do(t, raw, "INFO", "commandstats")
	info, _ := m.ToString()
	for line := range strings.Lines(info) {
		name, stats, ok := strings.Cut(strings.TrimSpace(line), ":calls=")
		if !ok || name == "cmdstat_info" {
			continue
		}
		n, err := strconv.Atoi(stats[:strings.IndexByte(stats, ',')])
		if err != nil {
			t.Fatal(err)
		}
		all += n
		if name == "cmdstat_evalsha" || name == "cmdstat_eval" {
			scripts += n
		}
	}
	return all, scripts
}

// A warm session costs no round trip; what is left is the watcher's look and the
// connection's ping, once a second each.
func TestWarmGetAsksNobody(t *testing.T) {
	server := redistest.Start(t)
	raw := plain(t, server.Addr)
	s := open(t, server, Config{})
	r := newRecord()
	create(t, s, r)
	get(t, s, r.Key())

	before, scripts := calls(t, raw)
	for range 1000 {
		get(t, s, r.Key())
	}
	after, now := calls(t, raw)
	if now != scripts || after-before >= 5 {
		t.Errorf("1000 Gets cost %d scripts and %d commands in all", now-scripts, after-before)
	}

	// What it costs without copies, so that the count above means something.
	s.cache.clear()
	get(t, s, r.Key())
	if _, now := calls(t, raw); now != scripts+1 {
		t.Errorf("a cold Get costs %d scripts, want 1", now-scripts)
	}
}

// A Touch leaves the copies of other replicas alone; they end all the same when
// the session would have without it.
func TestTouchLeavesCopiesElsewhere(t *testing.T) {
	server := redistest.Start(t)
	raw := plain(t, server.Addr)
	one, two := open(t, server, Config{}), open(t, server, Config{})
	r := newRecord()
	create(t, one, r)
	if err := one.Touch(t.Context(), r.Key(), r.LastSeen); err != nil { // Redis knows the script now
		t.Fatal(err)
	}
	get(t, one, r.Key())
	get(t, two, r.Key())
	settle(t, one)
	settle(t, two)
	_, scripts := calls(t, raw)
	seen := r.LastSeen.Add(time.Minute)
	if err := one.Touch(t.Context(), r.Key(), seen); err != nil {
		t.Fatal(err)
	}
	settle(t, one)
	settle(t, two)
	if got := get(t, one, r.Key()).LastSeen; !got.Equal(seen) {
		t.Errorf("own Touch: LastSeen %v, want %v", got, seen)
	}
	get(t, two, r.Key())
	if _, now := calls(t, raw); now != scripts+1 {
		t.Errorf("a Touch and two warm Gets cost %d scripts, want 1", now-scripts)
	}
}

func TestCopyEndsWithTheRecord(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server, Config{})
	r := newRecord()
	create(t, s, r)
	const left = 400 * time.Millisecond // of an hour, so the copy would do for minutes
	started := time.Now()
	do(t, plain(t, server.Addr), "PEXPIRE", namesOf(DefaultPrefix, r.Key()).seen, "400")
	for {
		_, err := s.Get(t.Context(), r.Key())
		if since := time.Since(started); err != nil {
			if since < left-10*time.Millisecond || !errors.Is(err, session.ErrNotFound) {
				t.Errorf("gone after %v: %v", since, err)
			}
			return
		} else if since > left+time.Second {
			t.Fatalf("there after %v", since)
		}
	}
}

// An ended session leaves nothing: neither key is there for ever.
func TestKeysExpire(t *testing.T) {
	server := redistest.Start(t)
	raw := plain(t, server.Addr)
	s := open(t, server, Config{})
	r := newRecord()
	create(t, s, r)
	if _, err := s.Update(t.Context(), r.Key(), func(r *session.Record) error {
		r.LastSeen = r.LastSeen.Add(time.Second)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	n := namesOf(DefaultPrefix, r.Key())
	check := func(when string) {
		t.Helper()
		for key, want := range map[string]int64{n.record: 2 * 3600e3, n.seen: 3600e3} {
			m := do(t, raw, "PTTL", key)
			if left, _ := m.AsInt64(); left > want || left < want-60e3 {
				t.Errorf("%s: %s ends in %d ms, want about %d", when, key, left, want)
			}
		}
	}
	check("at first")
	do(t, raw, "PEXPIRE", n.record, "5000000") // less than one and a half hours
	do(t, raw, "PEXPIRE", n.seen, "1000")
	if err := s.Touch(t.Context(), r.Key(), time.Now()); err != nil {
		t.Fatal(err)
	}
	check("after Touch")
}
