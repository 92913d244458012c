//go:build unix

package redis

import (
	"errors"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/session/redis/redistest"
)

func TestRefusals(t *testing.T) {
	tests := []struct {
		name string
		args []string
		url  func(addr string) string
		kind kind
		log  string
	}{
		{"wrong password", []string{"--requirepass", "right"}, func(a string) string { return "redis://:wrongsecret@" + a }, kindAuth, "authentication failed"},
		{"no password", []string{"--requirepass", "right"}, func(a string) string { return "redis://" + a }, kindAuth, "authentication failed"},
		{"no permission", []string{"--user", "default", "on", "nopass", "~other:*", "&*", "+@all"}, nil, kindAuth, "authentication failed"},
		{"no memory", []string{"--maxmemory", "1"}, nil, kindFull, "reason=full"},
		{"replica", []string{"--replicaof", "127.0.0.1 1"}, nil, kindReadOnly, "reason=readonly"},
		{"cluster without slots", []string{"--cluster-enabled", "yes"}, nil, kindCluster, "reason=cluster"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out logs
			server := redistest.Start(t, tt.args...)
			cfg := Config{Log: out.logger()}
			if tt.url != nil {
				cfg.URL = tt.url(server.Addr)
			}
			s := open(t, server, cfg)
			for name, err := range everyCall(t.Context(), s, newRecord().Key()) {
				if name == "Create" || tt.kind == kindAuth || tt.kind == kindCluster {
					if !errors.Is(err, session.ErrUnavailable) || kindOf(err) != tt.kind {
						t.Errorf("%s: error %v of kind %q, want ErrUnavailable of kind %q", name, err, kindOf(err), tt.kind)
					}
				}
			}
			eventually(t, "the log says why", func() bool { return strings.Contains(out.String(), tt.log) })
			if s.Ready() == nil {
				t.Error("ready")
			}
			if got := out.String(); strings.Contains(got, "wrongsecret") || strings.Count(got, "level=WARN") != 1 {
				t.Errorf("want one warning without the password:\n%s", got)
			}
		})
	}
}

func TestNoTrackingIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var out logs
	server := redistest.Start(t, noTracking...)
	s := open(t, server, Config{Log: out.logger()})
	raw := plain(t, server.Addr)
	r := newRecord()
	create(t, s, r)
	get(t, s, r.Key())
	_, before := calls(t, raw)
	for range 10 {
		get(t, s, r.Key())
	}
	if _, after := calls(t, raw); after-before != 10 {
		t.Errorf("10 Gets cost %d scripts", after-before)
	}
	if n := strings.Count(out.String(), "refuses CLIENT TRACKING"); n != 1 {
		t.Errorf("said %d times:\n%s", n, out.String())
	}
}

// A server may lose tracking while the Store runs: a fail-over to another kind.
func TestTrackingLost(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server, Config{})
	r := newRecord()
	create(t, s, r)
	get(t, s, r.Key())
	raw := plain(t, server.Addr)
	do(t, raw, "ACL", "SETUSER", "default", "-client|tracking")
	do(t, raw, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	eventually(t, "works without", func() bool { return s.untracked.Load() && works(s, r) })
}
