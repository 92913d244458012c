package front

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/auth"
	"github.com/signalbox-mcp/signalbox/internal/live"
)

// logged has the front write its log, down to debug, where a test can read it.
func logged(out *bytes.Buffer, change func(*Config)) func(*Config) {
	return func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		change(c)
	}
}

func TestRequestRate(t *testing.T) {
	for rate, burst := range map[int]int{1: 10, 5: 10, 20: 40} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			var log bytes.Buffer
			inBubble(t, setup{config: logged(&log, func(c *Config) { c.RequestRate = rate })}, func(t *testing.T, r *rig) {
				allowed := func() (n int) {
					for ; ; n++ {
						got := r.do("GET", "/mcp", "") // without a session
						if got.status == 400 {
							continue
						}
						if got.status != 429 || got.header.Get("Retry-After") != "1" || lookup(got.body, "error", "data", "reason") != `"rate_limit"` || !strings.Contains(got.body, "--max-requests-per-second") {
							t.Errorf("refused with %d %v %s", got.status, got.header, got.body)
						}
						return n
					}
				}
				if n := allowed(); n != burst {
					t.Errorf("%d at once, want %d", n, burst)
				}
				time.Sleep(time.Second)
				if n := allowed(); n != rate {
					t.Errorf("%d in a second", n)
				}
				time.Sleep(time.Second - time.Second/time.Duration(rate))
				if n := allowed(); n != rate-1 {
					t.Errorf("%d in less than a second", n)
				}
				for _, path := range []string{"/healthz", "/readyz", auth.WellKnown} {
					if got := r.do("GET", path, ""); got.status == 429 {
						t.Errorf("%s: %s", path, got.body)
					}
				}
				if got := r.do("OPTIONS", "/mcp", "", "Origin: http://localhost"); got.status != 204 {
					t.Errorf("preflight: %d", got.status)
				}
				for range 20 {
					r.do("POST", "/mcp", initBody(rev))
				}
				if n := r.procs.count(); n != 0 {
					t.Errorf("%d processes started", n)
				}
				if n := r.metric("signalbox_refused_total", "rate_limit"); n != 23 {
					t.Errorf("%v refusals counted", n)
				}
				time.Sleep(time.Minute)
				if n := allowed(); n != burst {
					t.Errorf("%d after a rest", n)
				}
			})
			text := log.String()
			if n := strings.Count(text, "level=WARN"); n != 1 || !strings.Contains(text, "limit=--max-requests-per-second status=429 server=srv principal=anonymous") {
				t.Errorf("%d warnings:\n%s", n, text)
			}
			if n := strings.Count(text, "level=DEBUG"); n < 5 || n > 15 {
				t.Errorf("%d lines follow", n)
			}
		})
	}
}

// Each principal has requests of its own, wherever they come from.
func TestRequestRateOfPrincipals(t *testing.T) {
	file, keys := filepath.Join(t.TempDir(), "keys.yaml"), make(map[string]string)
	var entries string
	for _, name := range []string{"a", "b"} {
		key, entry, err := auth.NewKey(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		keys[name], entries = key, entries+entry
	}
	if err := os.WriteFile(file, []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	inBubble(t, setup{config: logged(&log, func(c *Config) {
		var err error
		if c.Auth, err = auth.New(auth.Config{KeysFile: file, Log: c.Log, Metrics: auth.NewMetrics()}); err != nil {
			t.Fatal(err)
		}
		c.RequestRate = 1
	})}, func(t *testing.T, r *rig) {
		defer r.front.cfg.Auth.Close()
		for _, name := range []string{"a", "b"} {
			for i := range 12 {
				q := httptest.NewRequest("GET", "http://localhost/mcp", nil)
				q.RemoteAddr = fmt.Sprintf("10.0.0.%d:1", i)
				q.Header.Set("X-Api-Key", keys[name])
				if got, want := code(r, q), i >= 10; (got == 429) != want {
					t.Errorf("%s, request %d: %d", name, i, got)
				}
			}
		}
		for range 20 { // credentials that are none have their own limit
			if got := r.do("GET", "/mcp", ""); got.status != 401 {
				t.Errorf("got %d", got.status)
			}
		}
	})
	if text := log.String(); !strings.Contains(text, `principal="key a"`) || strings.Contains(text, keys["a"]) {
		t.Error(text)
	}
}

// code is the status of the answer to q.
func code(r *rig, q *http.Request) int {
	w := httptest.NewRecorder()
	r.front.ServeHTTP(w, q)
	return w.Code
}

// Where all are anonymous, each address has requests of its own.
func TestRequestRateOfAddresses(t *testing.T) {
	inBubble(t, setup{config: func(c *Config) { c.RequestRate = 1 }}, func(t *testing.T, r *rig) {
		get := func(from string) int {
			q := httptest.NewRequest("GET", "http://localhost/mcp", nil)
			q.RemoteAddr = from
			return code(r, q)
		}
		for range 10 {
			get("10.0.0.1:1")
			get("[2001:db8::1]:1")
		}
		for from, want := range map[string]int{
			"10.0.0.1:2": 429, "[::ffff:10.0.0.1]:3": 429, "10.0.0.2:1": 400,
			"[2001:db8::ffff]:1": 429, "[2001:db8:0:1::1]:1": 400,
		} {
			if got := get(from); got != want {
				t.Errorf("%s: %d, want %d", from, got, want)
			}
		}
	})
}

func TestClientNetwork(t *testing.T) {
	f := &Front{cfg: Config{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}}
	for _, c := range []struct {
		remote, want string
		forwarded    []string
	}{
		{"192.0.2.1:5", "192.0.2.1/32", nil},
		{"192.0.2.1:5", "192.0.2.1/32", []string{"198.51.100.1"}}, // nobody's word
		{"10.0.0.1:5", "10.0.0.1/32", nil},
		{"10.0.0.1:5", "198.51.100.1/32", []string{"198.51.100.1"}},
		{"[::ffff:10.0.0.1]:5", "198.51.100.1/32", []string{"198.51.100.1"}},
		{"10.0.0.1:5", "198.51.100.1/32", []string{"203.0.113.9, 198.51.100.1"}}, // what the client wrote itself
		{"10.0.0.1:5", "198.51.100.1/32", []string{"203.0.113.9", "198.51.100.1"}},
		{"10.0.0.1:5", "198.51.100.1/32", []string{"198.51.100.1, 10.9.9.9,10.0.0.2"}},
		{"[fd00::1]:5", "2001:db8:1:2::/64", []string{"2001:db8:1:2:3::4"}},
		{"10.0.0.1:5", "2001:db8:1:2::/64", []string{"[2001:db8:1:2:3::4]:443"}},
		{"10.0.0.1:5", "2001:db8:1:2::/64", []string{"[2001:db8:1:2:3::4]"}},
		{"10.0.0.1:5", "198.51.100.1/32", []string{"198.51.100.1:1234"}},
		{"10.0.0.1:5", "10.0.0.3/32", []string{"10.0.0.3, 10.0.0.2"}}, // all are ours
		{"10.0.0.1:5", "10.0.0.1/32", []string{"unknown"}},
		{"10.0.0.1:5", "10.0.0.2/32", []string{"198.51.100.1, unknown, 10.0.0.2"}},
		{"10.0.0.1:5", "10.0.0.1/32", []string{"198.51.100.1,"}},
		{"10.0.0.1:5", "10.0.0.1/32", []string{""}},
		{"@", "invalid Prefix", []string{"198.51.100.1"}},
	} {
		q := httptest.NewRequest("GET", "/mcp", nil)
		q.RemoteAddr, q.Header["X-Forwarded-For"] = c.remote, c.forwarded
		if got := f.network(q).String(); got != c.want {
			t.Errorf("%s %q: %s, want %s", c.remote, c.forwarded, got, c.want)
		}
	}
}

// What is remembered is bounded, and what could be refused is forgotten last.
func TestBucketsAreBounded(t *testing.T) {
	l, now := newRates(1), time.Now()
	busy := requester{principal: "busy"}
	for range 10 {
		l.wait(busy, now)
	}
	for i := range maxBuckets + 1000 {
		if l.wait(requester{principal: fmt.Sprint(i)}, now) != 0 {
			t.Fatalf("new principal %d has to wait", i)
		}
		if l.wait(busy, now) == 0 {
			t.Fatalf("forgotten after %d others", i)
		}
	}
	if len(l.buckets) != maxBuckets || l.used.Len() != maxBuckets {
		t.Errorf("%d and %d buckets", len(l.buckets), l.used.Len())
	}
	if w := l.wait(busy, now.Add(l.refill/2)); w != 0 {
		t.Errorf("after a while: %s", w)
	}
	l.wait(requester{principal: "new"}, now.Add(l.refill+time.Second))
	if len(l.buckets) != 2 || l.used.Len() != 2 {
		t.Errorf("%d and %d buckets after a rest", len(l.buckets), l.used.Len())
	}
}

func TestCallsInFlight(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(*live.Limits)
		status int
		reason string
		flag   string
	}{
		"in all":           {func(l *live.Limits) { l.AllCalls = 1 }, 503, `"calls_limit"`, "--max-calls"},
		"of one principal": {func(l *live.Limits) { l.PrincipalCalls = 1 }, 429, `"principal_calls_limit"`, "--max-calls-per-principal"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			inBubble(t, setup{limits: c.set, config: logged(&log, func(*Config) {})}, func(t *testing.T, r *rig) {
				session := r.open(rev)
				messages, events := r.legacyReady()
				defer events.close()
				done := make(chan reply)
				go func() {
					done <- r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"slow"}`, session, "Accept: application/json")
				}()
				p := r.procs.list[0]
				msg := p.next()
				for what, got := range map[string]reply{
					"a call": r.do("POST", "/mcp", ping, session), "initialize": r.do("POST", "/mcp", initBody(rev)),
				} {
					if got.status != c.status || got.header.Get("Retry-After") != "1" || lookup(got.body, "error", "data", "reason") != c.reason || !strings.Contains(got.body, c.flag) {
						t.Errorf("%s: %d %v %s", what, got.status, got.header, got.body)
					}
				}
				if got := r.do("POST", messages, ping); got.status != 202 {
					t.Errorf("old transport: %d %s", got.status, got.body)
				}
				if got := string(events.next().Data); lookup(got, "error", "data", "reason") != c.reason {
					t.Errorf("old transport: %s", got)
				}
				if n := r.metric("signalbox_refused_total", strings.Trim(c.reason, `"`)); n != 3 {
					t.Errorf("%v refusals counted", n)
				}
				if got := r.do("POST", "/mcp", initialized, session); got.status != 202 {
					t.Errorf("a notification: %d %s", got.status, got.body)
				}
				p.answer(msg, "{}")
				if got := <-done; got.status != 200 {
					t.Errorf("the call in flight: %d", got.status)
				}
				for range 5 { // one after the other never meets itself
					if got := r.do("POST", "/mcp", ping, session); got.status != 200 {
						t.Errorf("afterwards: %d %s", got.status, got.body)
					}
				}
			})
			if text := log.String(); strings.Count(text, "level=WARN") != 1 || strings.Count(text, "level=DEBUG") != 2 || !strings.Contains(text, "limit="+c.flag+" ") {
				t.Error(text)
			}
		})
	}
}
