package main

import (
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
