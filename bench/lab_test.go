package main

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/bench/internal/echo"
	"github.com/signalbox-mcp/signalbox/bench/internal/load"
)

// TestBehind starts proxies before their servers, calls through them and ends both.
func TestBehind(t *testing.T) {
	l := &lab{dir: t.TempDir(), say: io.Discard}
	if err := l.build(t.Context(), ".", "./directserver", "./reverseproxy"); err != nil {
		t.Fatal(err)
	}
	all := newTargets()
	for name, target := range map[string]*target{"ReverseProxy": all.reverseProxy, "nginx": all.nginx, "nginx for events": all.nginxStream} {
		t.Run(name, func(t *testing.T) {
			if target.needs != "" {
				if _, err := find(target.needs); err != nil {
					t.Skip(err)
				}
			}
			on, err := l.start(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			defer on.stop()
			callThrough(t, on)
			if alone, err := on.behind.cpu(); err != nil {
				t.Error(err)
			} else if both, err := on.cpu(); err != nil || both < alone {
				t.Errorf("processor time %v, of the server alone %v, %v", both, alone, err)
			}
			on.behind.stop()
			if on.ended() == nil {
				t.Error("that its server has ended goes unseen")
			}
			on.stop()
			if ended, _ := on.process.Ended(); !ended {
				t.Error("it goes on")
			}
		})
	}
}

// TestSignalbox starts Signalbox in the ways of the rows on eras, logs and metrics, and calls
// through it.
func TestSignalbox(t *testing.T) {
	l := &lab{dir: t.TempDir(), say: io.Discard, opts: options{quick: true}}
	if err := errors.Join(l.build(t.Context(), ".", "./echoserver", "./directserver"), l.build(t.Context(), "..", "./cmd/signalbox")); err != nil {
		t.Fatal(err)
	}
	all := newTargets()
	for name, tc := range map[string]struct {
		target *target
		client load.Client
		admin  bool
	}{
		"2026-07-28":           {all.modern, load.PerRequest, true},
		"2026-07-28, bridged":  {all.legacy, load.PerRequest, true},
		"handshake":            {all.legacyShared, load.Streamable, true},
		"handshake, bridged":   {all.modernShared, load.Streamable, true},
		"logs and metrics":     {all.watched, load.Streamable, true},
		"without them":         {all.quiet, load.Streamable, false},
		"HTTP, with them":      {all.remoteWatched, load.Streamable, true},
		"HTTP server, without": {all.remoteQuiet, load.Streamable, false},
	} {
		t.Run(name, func(t *testing.T) {
			on, err := l.start(t.Context(), tc.target)
			if err != nil {
				t.Fatal(err)
			}
			defer on.stop()
			plan := load.Plan{Endpoint: on.Endpoint, Client: tc.client, Sessions: 4, Bytes: 200, Measure: 500 * time.Millisecond}
			if _, err := load.Run(t.Context(), plan); err != nil {
				t.Error(err)
			}
			if _, _, err := on.get(t.Context(), "/metrics"); (err == nil) != tc.admin {
				t.Errorf("admin listener: %v", err)
			}
		})
	}
	t.Run("a crowd", func(t *testing.T) {
		for _, r := range adminRows(all) {
			for _, s := range r.series() {
				m, err := l.once(t.Context(), s, nil)
				if err != nil || m.value <= 0 {
					t.Errorf("%s: %s: %v, %v", r.key, s.name, m.value, err)
				}
			}
		}
	})
}

// callThrough makes some calls of each kind, all checked.
func callThrough(t *testing.T, on *running) {
	s, err := load.Open(on.Endpoint, load.Streamable, time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer s.End()
	for _, calls := range []*load.Calls{
		load.NewCalls("echo", "small-", 200, ""),
		load.NewProgressCalls("steps", "steps-", 200, echo.Steps),
		load.NewCalls("echo", "large-", mib, ""),
	} {
		for range 3 {
			reply, err := s.Call(calls.Next())
			if err == nil {
				err = calls.Check(reply.Response, calls.Payload())
			}
			if err == nil {
				err = calls.CheckProgress(reply.Before)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
