package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/admin"
	"github.com/signalbox-mcp/signalbox/internal/front"
	"github.com/signalbox-mcp/signalbox/internal/guard"
	"github.com/signalbox-mcp/signalbox/internal/observe"
	"github.com/signalbox-mcp/signalbox/internal/upstream/process"
)

// minToken is the least that the token of the admin listener may have, in bytes.
const minToken = 16

// readToken reads the token of the admin listener.
func readToken(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--admin-token-file: %w", err)
	}
	token := strings.TrimSpace(string(b))
	switch {
	case len(token) < minToken:
		return "", fmt.Errorf("--admin-token-file: %s has %d bytes, at least %d are needed", path, len(token), minToken)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("--admin-token-file: %s has characters that cannot stand in a header; use visible ASCII without spaces", path)
	}
	return token, nil
}

// tell lets the recorder hear of what is refused and dropped; nil hears nothing.
func tell(rec *observe.Recorder, a *app, requests *front.Metrics) {
	if !rec.On() {
		return
	}
	requests.Refused = func(reason string) {
		rec.Refused(time.Now(), observe.Incident{Reason: reason})
	}
	a.policies.Refused = func(server, kind, name string) {
		rec.Refused(time.Now(), observe.Incident{Reason: "policy_" + kind, Server: server, Detail: name})
	}
	a.processes.Dropped = func(server string, reason process.DropReason, method string) {
		rec.Dropped(time.Now(), observe.Incident{Reason: string(reason), Server: server, Detail: method})
	}
}

func (a *app) adminConfig(reg *prometheus.Registry, g *guard.Guard, token string, rec *observe.Recorder, level *slog.LevelVar) admin.Config {
	cfg := admin.Config{
		Metrics: reg, Guard: g, Token: token, Servers: a.states, Live: a.live, Recorder: rec, Version: versionText(), Log: a.log, Level: level,
	}
	if a.shared != nil {
		cfg.Replicas = a.replicas
	}
	return cfg
}

// replicas are those that share the store, this one included.
func (a *app) replicas(ctx context.Context) ([]admin.Replica, error) {
	peers, err := a.shared.node.Peers(ctx)
	list := make([]admin.Replica, len(peers))
	for i, p := range peers {
		list[i] = admin.Replica{ID: p.ID, Address: p.Address, Self: p.Self, LeaseSeconds: p.Lease.Truncate(time.Millisecond).Seconds()}
	}
	return list, err
}
