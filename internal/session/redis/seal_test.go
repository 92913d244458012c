//go:build unix

package redis

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/session/redis/redistest"
)

// dump returns every key and value of the server.
func dump(t *testing.T, raw rueidis.Client) string {
	t.Helper()
	var b strings.Builder
	m := do(t, raw, "KEYS", "*")
	keys, _ := m.AsStrSlice()
	for _, k := range keys {
		kind := do(t, raw, "TYPE", k)
		v := rueidis.RedisMessage{}
		if name, _ := kind.ToString(); name == "set" {
			v = do(t, raw, "SMEMBERS", k)
		} else {
			v = do(t, raw, "GET", k)
		}
		text, err := v.ToString()
		if err != nil {
			members, _ := v.AsStrSlice()
			text = strings.Join(members, " ")
		}
		fmt.Fprintf(&b, "%s = %s\n", k, text)
	}
	return b.String()
}

func TestNothingToReadInRedis(t *testing.T) {
	server := redistest.Start(t)
	raw := plain(t, server.Addr)
	s := open(t, server, Config{})
	r := session.Record{
		ID: "MARK-id", Server: "MARK-server", Principal: "MARK-principal", Transport: "MARK-transport",
		Revision: "MARK-revision", Created: time.Now(), Initialize: []byte("MARK-initialize"), Home: "MARK-home",
		Upstream: "MARK-upstream", UpstreamSession: "MARK-session", UpstreamRevision: "MARK-ur",
		Subscriptions: []string{"MARK-uri"}, LogLevel: "MARK-level", LastSeen: time.Now(),
	}
	create(t, s, r)
	if _, err := s.Update(t.Context(), r.Key(), func(r *session.Record) error {
		r.Home = "MARK-other"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Touch(t.Context(), r.Key(), time.Now()); err != nil {
		t.Fatal(err)
	}
	all := dump(t, raw)
	if strings.Contains(all, "MARK") {
		t.Errorf("Redis shows what belongs to the session:\n%q", all)
	}
	m := do(t, raw, "KEYS", "*:{*")
	if keys, _ := m.AsStrSlice(); len(keys) != 2 {
		t.Errorf("keys of the session %q, want two", keys)
	}
}

// sealedFails checks that k is neither found nor called missing.
func sealedFails(t *testing.T, s *Store, k session.Key) {
	t.Helper()
	_, err := s.Get(t.Context(), k)
	_, updated := s.Update(t.Context(), k, func(*session.Record) error {
		t.Error("Update calls change with what it could not open")
		return nil
	})
	for call, err := range map[string]error{"Get": err, "Update": updated} {
		if !errors.Is(err, ErrSealed) || !errors.Is(err, session.ErrUnavailable) || errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s: error %v, want ErrSealed and ErrUnavailable", call, err)
		}
	}
}

func TestMovedRecordIsRefused(t *testing.T) {
	server := redistest.Start(t)
	raw := plain(t, server.Addr)
	s := open(t, server, Config{})
	mine, theirs := newRecord(), newRecord()
	create(t, s, mine)
	create(t, s, theirs)
	m := do(t, raw, "GET", namesOf(DefaultPrefix, theirs.Key()).record)
	value, _ := m.ToString()
	do(t, raw, "SET", namesOf(DefaultPrefix, mine.Key()).record, value, "KEEPTTL")
	settle(t, s)
	sealedFails(t, s, mine.Key())
	get(t, s, theirs.Key())
}

func TestDamagedRecordIsRefused(t *testing.T) {
	server := redistest.Start(t)
	raw := plain(t, server.Addr)
	s := open(t, server, Config{})
	r := newRecord()
	create(t, s, r)
	n := namesOf(DefaultPrefix, r.Key())
	m := do(t, raw, "GET", n.record)
	value, _ := m.ToString()
	for _, bad := range []string{"x", "\x02" + value[1:], value[:20], value[:len(value)-1], value + "x", value[:40] + "\x00" + value[41:] + "y"} {
		do(t, raw, "SET", n.record, bad, "KEEPTTL")
		settle(t, s)
		sealedFails(t, s, r.Key())
	}
	do(t, raw, "SET", n.record, value, "KEEPTTL")
	settle(t, s)
	get(t, s, r.Key())
	for _, bad := range []string{"x", "0 1 2", "100 x 2", "100 1", "100 1 1000000000"} {
		do(t, raw, "SET", n.seen, bad, "KEEPTTL")
		s.cache.clear() // a change of this key ends no copy
		sealedFails(t, s, r.Key())
	}
}

func TestKeyRotation(t *testing.T) {
	var out logs
	server := redistest.Start(t)
	newKey := bytes.Repeat([]byte("n"), 40)
	before := open(t, server, Config{})
	r := newRecord()
	create(t, before, r)
	after := open(t, server, Config{Key: newKey, OldKeys: [][]byte{testKey}})
	get(t, after, r.Key())
	if _, err := after.Update(t.Context(), r.Key(), func(*session.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	settle(t, before)
	sealedFails(t, before, r.Key()) // sealed with the new key now

	stranger := open(t, server, Config{Key: bytes.Repeat([]byte("s"), 32), Log: out.logger()})
	for range 3 {
		sealedFails(t, stranger, r.Key())
	}
	if n := strings.Count(out.String(), "sealed with another key"); n != 1 {
		t.Errorf("said %d times:\n%s", n, out.String())
	}
	if strings.Contains(out.String(), r.ID) {
		t.Errorf("the id is logged:\n%s", out.String())
	}
	if err := stranger.Delete(t.Context(), r.Key()); err != nil {
		t.Errorf("Delete of what cannot be opened: %v", err)
	}
}

func TestPrefixesApart(t *testing.T) {
	server := redistest.Start(t)
	one, two := open(t, server, Config{Prefix: "a"}), open(t, server, Config{Prefix: "a:b"})
	r := newRecord()
	create(t, one, r)
	if _, err := two.Get(t.Context(), r.Key()); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("the other prefix: %v", err)
	}
}

func TestConfig(t *testing.T) {
	good := Config{URL: "redis://localhost", Key: testKey}
	for name, change := range map[string]func(*Config){
		"short key":     func(c *Config) { c.Key = testKey[:31] },
		"short old key": func(c *Config) { c.OldKeys = [][]byte{nil} },
		"brace":         func(c *Config) { c.Prefix = "a{b" },
		"space":         func(c *Config) { c.Prefix = "a b" },
		"timeout":       func(c *Config) { c.Timeout = -1 },
		"cache":         func(c *Config) { c.CacheBytes = -1 },
		"URL":           func(c *Config) { c.URL = "http://localhost" },
	} {
		c := good
		change(&c)
		if s, err := Open(c); err == nil {
			s.Close()
			t.Errorf("%s: Open succeeds", name)
		}
	}
}
