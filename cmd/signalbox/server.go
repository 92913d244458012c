package main

import (
	"maps"
	"os"
	"slices"

	"github.com/signalbox-mcp/signalbox/internal/admin"
	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/upstream/process"
	"github.com/signalbox-mcp/signalbox/internal/upstream/remote"
)

// served is a server that is offered.
type served struct {
	spec    spec
	backend *live.Backend
	remote  *remote.Server // nil for a command
	eras    interface{ Eras() string }
}

// offer makes specs the servers from now on. One that did not change stays the
// same; sessions of the others keep what they began with.
func (a *app) offer(specs []spec) (changed int) {
	a.mu.Lock()
	old := a.servers
	a.servers = nil
	var backends []*live.Backend
	for _, s := range specs {
		i := slices.IndexFunc(old, func(o *served) bool { return o.spec.same(s) })
		if i >= 0 {
			a.servers = append(a.servers, old[i])
			old = slices.Delete(slices.Clone(old), i, i+1)
		} else {
			a.servers = append(a.servers, a.newServed(s))
			changed++
		}
		backends = append(backends, a.servers[len(a.servers)-1].backend)
	}
	a.mu.Unlock()
	a.front.SetBackends(backends)
	for _, o := range old {
		a.live.Retire(o.backend)
	}
	return changed + max(0, len(old)-changed)
}

// retireAll is the end of all servers.
func (a *app) retireAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.servers {
		a.live.Retire(s.backend)
	}
	a.live.WaitRetired()
}

func (a *app) newServed(s spec) *served {
	out := &served{spec: s}
	var l legs
	if s.url != nil {
		out.remote = a.newRemote(s)
		l = httpLegs(out.remote, s.url.String(), s.header, s.Type == "sse")
	} else {
		l = a.stdioLegs(s)
	}
	both := a.eras.both(s, l, a.log.With("server", s.Name))
	out.eras = both
	server := a.guarded(both, s)
	out.backend = &live.Backend{
		Name: s.Name, Server: server, Idle: s.idle, MaxAge: s.maxAge, MaxMessage: int64(s.limits.MaxMessage),
		MaxSessions: s.maxSessions, MaxPerPrincipal: s.maxSessionsPerPrincipal,
	}
	return out
}

func (a *app) newRemote(s spec) *remote.Server {
	kind := remote.Detect
	switch s.Type {
	case "http":
		kind = remote.Streamable
	case "sse":
		kind = remote.SSE
	}
	return newRemote(remote.Config{
		Name: s.Name, URL: s.url, Kind: kind, Endpoints: s.endpoints, Header: s.header, ForwardHeaders: slices.Concat(s.ForwardHeaders, slices.Sorted(maps.Keys(s.ClaimHeaders))),
		Authorizer: newClientCredentials(s.Credentials), Reinitialize: s.OnLost == "reinitialize", Buffers: &a.buffers,
		StartTimeout: s.limits.StartTimeout, CallTimeout: s.limits.CallTimeout, CallLimit: s.limits.CallLimit, MaxMessage: int(s.limits.MaxMessage),
	}, a.processes, a.log.With("server", s.Name))
}

// programOf is how the process of a server is started.
func programOf(s spec) child.Spec {
	return child.Spec{
		Name: s.Name, Args: append([]string{s.Command}, s.Args...), Env: child.BaseEnv(os.Environ(), s.PassEnv, s.Env), Dir: s.Cwd,
		MaxLine: int(s.limits.MaxMessage),
	}
}

// program is that of a server, with what all of its processes share.
func (a *app) program(s spec) child.Spec {
	program := programOf(s)
	program.Buffers = &a.buffers
	if s.maxProcesses > 0 {
		program.Quota = &child.Quota{Max: s.maxProcesses}
	}
	return program
}

func (a *app) processConfig(s spec, start func(child.Handler, upstream.Request) (process.Pipe, error)) process.Config {
	return process.Config{
		Name: s.Name, Shared: s.Isolation == "shared", Start: start,
		StartTimeout: s.limits.StartTimeout, CallTimeout: s.limits.CallTimeout, CallLimit: s.limits.CallLimit,
		MaxMessage: int(s.limits.MaxMessage), ShowStderr: a.showStderr, Version: versionText(), Buffers: &a.buffers,
		Log: a.log.With("server", s.Name), Metrics: a.processes,
	}
}

// states is what operators see of the servers.
func (a *app) states() []admin.Server {
	a.mu.Lock()
	servers := slices.Clone(a.servers)
	a.mu.Unlock()
	list := make([]admin.Server, len(servers))
	for i, s := range servers {
		st := a.live.State(s.backend)
		list[i] = admin.Server{
			Name: s.spec.Name, Kind: "stdio", Isolation: s.spec.Isolation, Era: s.eras.Eras(), Sessions: st.Sessions, Started: st.Started,
			WorkedAt: st.WorkedAt, FailedAt: st.FailedAt, Failure: st.Failure,
		}
		if s.remote != nil {
			list[i].Kind, list[i].Isolation = "http", ""
			for _, at := range s.remote.Addresses() {
				list[i].Addresses = append(list[i].Addresses, admin.Address{Address: at.Address, Down: at.Down, Sessions: at.Sessions})
			}
		}
		list[i].State = state(list[i])
	}
	return list
}

// state is one word: what the last session of the server met.
func state(s admin.Server) string {
	switch {
	case s.FailedAt.After(s.WorkedAt):
		return "failing"
	case s.WorkedAt.IsZero():
		return "unused"
	}
	return "working"
}
