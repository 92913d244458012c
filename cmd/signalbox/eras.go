package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/bridge"
	"github.com/signalbox-mcp/signalbox/internal/bridge/dialog"
	"github.com/signalbox-mcp/signalbox/internal/bridge/park"
	seals "github.com/signalbox-mcp/signalbox/internal/bridge/state"
	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/upstream/process"
	"github.com/signalbox-mcp/signalbox/internal/upstream/remote"
)

// eras is what the servers of one process share for clients of both eras.
type eras struct {
	verdicts    bridge.Verdicts
	ring        *seals.Ring
	replica     string // "": there are no others
	maxSessions int    // at a server, that clients of the per-request era make needed; 0: a default
	alone       bool   // clients cannot be told apart, and are not all one person
	parked      *park.Metrics
	dialogs     *dialog.Metrics
}

// newEras makes them. old is a key that was in use before; nil: none.
func newEras(key, old []byte) (*eras, error) {
	keys := [][]byte{key}
	if old != nil {
		keys = append(keys, old)
	}
	ring, err := seals.NewRing(keys...)
	if err != nil {
		return nil, err
	}
	return &eras{ring: ring, parked: park.NewMetrics(), dialogs: dialog.NewMetrics()}, nil
}

// legs are the two ways in which a server speaks.
type legs struct {
	handshake  upstream.Server
	perRequest bridge.Member
	same       bool // they are one, and closed once
	probe      func(context.Context) (bridge.Finding, error)
	print      func() string
}

// mostIdle is how long a process or session that only saves the time to begin one is
// kept without use.
const mostIdle = 5 * time.Minute

// stdioLegs are those of a command: processes of their own for each.
func (a *app) stdioLegs(s spec) legs {
	program := a.program(s)
	start := func(from upstream.Request, pinned bool) func(child.Handler, upstream.Request) (process.Pipe, error) {
		return func(h child.Handler, init upstream.Request) (process.Pipe, error) {
			if pinned {
				init = from
			}
			return a.supervisor.Start(withClientEnv(program, s, init), h)
		}
	}
	handshake := process.New(a.processConfig(s, start(upstream.Request{}, false)))
	direct := func(from upstream.Request) bridge.Member {
		cfg := a.processConfig(s, start(from, true))
		cfg.PerRequest = true
		return process.New(cfg)
	}
	l := legs{handshake: handshake, print: func() string { return programPrint(program) }}
	if s.Isolation == "session" || len(s.ClaimEnv)+len(s.HeaderEnv) > 0 {
		l.perRequest = bridge.NewFleet(func(req upstream.Request) string { return principalOf(req) + scope(s, req) },
			func(req upstream.Request) bridge.Member {
				return direct(upstream.Request{Principal: req.Principal, Header: req.Header.Clone()})
			}, hiddenIdle(s.idle))
	} else {
		l.perRequest = direct(upstream.Request{})
	}
	l.probe = func(ctx context.Context) (bridge.Finding, error) {
		reply, err := handshake.Probe(ctx, bridge.Discover(versionText()))
		return bridge.Judge(reply), err
	}
	return l
}

// programPrint changes when a command, or the file behind it, is another.
func programPrint(program child.Spec) string {
	sum := sha256.New()
	for _, part := range slices.Concat(program.Args, program.Env, []string{program.Dir}) {
		fmt.Fprintf(sum, "%q\n", part)
	}
	if path, err := program.Find(); err == nil {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(sum, "%s %d %d", path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return "command " + string(sum.Sum(nil))
}

// httpLegs are those of a URL: one server, on one set of connections.
func httpLegs(server *remote.Server, url string, header http.Header, sse bool) legs {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %v", url, header)
	key := "url " + string(sum.Sum(nil))
	return legs{
		handshake: server, perRequest: server, same: true, print: func() string { return key },
		probe: func(ctx context.Context) (bridge.Finding, error) {
			if sse {
				return bridge.Finding{Reason: "its type is sse"}, nil
			}
			reply, status, err := server.Probe(ctx)
			if err != nil {
				return bridge.Finding{}, upstream.Errorf(mcp.CodeInternal, "unreachable", "the server cannot be reached: %v", err)
			}
			f, ok := bridge.JudgeHTTP(status, reply)
			if !ok {
				return f, upstream.Errorf(mcp.CodeInternal, "http_status", "the server answered server/discover with HTTP %d, so its era is not known; check its URL and credentials", status)
			}
			return f, nil
		},
	}
}

// both is a server for clients of both eras, made of its legs.
func (e *eras) both(s spec, l legs, log *slog.Logger) bridge.Both {
	parked := park.New(park.Config{
		Name: s.Name, Server: l.handshake, Shared: s.Isolation == "shared",
		Alone: func(upstream.Request) bool { return e.alone }, Scope: func(req upstream.Request) string { return scope(s, req) },
		Ring: e.ring, Replica: e.replica, MaxSessions: cmp.Or(s.maxSessions, e.maxSessions), Idle: hiddenIdle(s.idle), Question: s.limits.QuestionTimeout, Version: versionText(), Log: log, Metrics: e.parked,
	})
	talk := dialog.Config{
		Name: s.Name, Asker: l.perRequest, Question: s.limits.QuestionTimeout, CallLimit: s.limits.CallLimit,
		Version: versionText(), Log: log, Metrics: e.dialogs,
	}
	if s.url != nil {
		notes := bridge.NewAnnotations(l.perRequest, log)
		talk.Params, talk.Refresh, talk.Tools = notes.Params, notes.Refresh, notes.Tools
	}
	dialogs := dialog.New(talk)
	era := map[string]bridge.Era{"legacy": bridge.Legacy, "modern": bridge.Modern}[s.Era]
	return bridge.New(bridge.Config{
		Name: s.Name, Era: era, Handshake: l.handshake, PerRequest: l.perRequest, Parked: parked, Dialog: dialogs,
		Close: func() {
			parked.Close()
			dialogs.Close()
			l.handshake.Close()
			if !l.same {
				l.perRequest.Close()
			}
		},
		Probe: l.probe, Fingerprint: l.print, Verdicts: &e.verdicts, Ring: e.ring, SeesHeaders: s.url != nil, Version: versionText(), Log: log,
	})
}

// hiddenIdle is how long a session that no client sees is kept without use: it is
// opened again when it is needed.
func hiddenIdle(idle time.Duration) time.Duration {
	if idle == 0 {
		return mostIdle
	}
	return min(idle, mostIdle)
}

func principalOf(req upstream.Request) string {
	if req.Principal == nil {
		return ""
	}
	return req.Principal.Key()
}

// scope is what else than the principal requests must have in common to use one
// session or process of a server: what it is told of who asks.
func scope(s spec, req upstream.Request) string {
	names := slices.Concat(s.ForwardHeaders, slices.Collect(maps.Keys(s.ClaimHeaders)), slices.Collect(maps.Values(s.HeaderEnv)))
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	var text []byte
	for _, name := range slices.Compact(names) {
		values := req.Header.Values(name)
		text = binary.AppendUvarint(text, uint64(len(values)))
		for _, v := range values {
			text = binary.AppendUvarint(text, uint64(len(v)))
			text = append(text, v...)
		}
	}
	return string(text)
}
