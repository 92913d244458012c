package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/signalbox-mcp/signalbox/internal/admin"
	"github.com/signalbox-mcp/signalbox/internal/buf"
	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/front"
	"github.com/signalbox-mcp/signalbox/internal/gcpace"
	"github.com/signalbox-mcp/signalbox/internal/guard"
	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/upstream/process"
	"github.com/signalbox-mcp/signalbox/internal/upstream/remote"
)

const (
	writeTimeout = 30 * time.Second // for each part written to a client
	readTimeout  = 30 * time.Second // for each part of a body
	flushTime    = 2 * time.Second  // for handlers to write out what they have, at the end
	bodyBudget   = 256 << 20        // bytes of all bodies that are being read; never less than four of the largest
	gcSlack      = 16 << 20         // bytes between two garbage collections, at least
	stopTime     = 10 * time.Second // for processes to end, a little over the two graces
)

func (c *serveCmd) run(ctx context.Context, forget func(), std streams) error {
	if err := c.check(); err != nil {
		return usageError{err}
	}
	key, err := c.stateKey()
	if err != nil {
		return usageError{err}
	}
	if key == nil {
		key = make([]byte, 32)
		rand.Read(key) // never fails (crypto/rand, Go 1.24)
	}
	log := newLogger(std.err, c.LogLevel, c.LogFormat)
	if mayAsk(c.Command) {
		log.Warn("npx may wait for an answer before it downloads; add -y")
	}
	// Addresses first: nothing is started for a process that cannot serve.
	listeners, err := listen(c.Listen, log)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer closeAll(listeners)
	var adminListener net.Listener
	if c.AdminListen != "" {
		if adminListener, err = net.Listen("tcp", c.AdminListen); err != nil {
			return fmt.Errorf("--admin-listen: %w", err)
		}
		defer adminListener.Close()
	}
	a, err := c.build(key, log)
	if err != nil {
		return err
	}
	gcpace.Start(gcSlack)
	announce(std.err, a.name, c.publicBase(listeners[0]), adminListener)
	return a.serve(ctx, forget, listeners, adminListener)
}

// app is everything that runs.
type app struct {
	name       string
	drain      time.Duration
	log        *slog.Logger
	supervisor *child.Supervisor
	server     upstream.Server
	store      session.Store
	live       *live.Manager
	front      *front.Front
	buffers    buf.Pool // of front, process and child: whoever is done with a message gives its buffer back
	admin      http.Handler
}

func (c *serveCmd) build(key []byte, log *slog.Logger) (*app, error) {
	reg := prometheus.NewRegistry()
	processes, sessions := process.NewMetrics(), live.NewMetrics()
	requests := front.NewMetrics(sessions.Streams)
	reg.MustRegister(processes, sessions, requests,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	sup, err := child.NewSupervisor(child.Options{MaxProcesses: c.MaxProcesses, Logger: log})
	if err != nil {
		return nil, err
	}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "signalbox_processes", Help: "Server processes, those that are stopping counted."},
		func() float64 { return float64(sup.Running()) }))

	a := &app{name: serverName(c.Command), drain: c.Drain, log: log, supervisor: sup, store: session.NewMemory()}
	if c.url != nil {
		a.name = hostName(c.url)
		a.server = newRemote(c.remoteConfig(a.name), processes, log.With("server", a.name))
	} else {
		a.server = process.New(c.processConfig(a.name, sup, processes, &a.buffers, log))
	}
	a.live = live.NewManager(live.Config{Limits: c.limits(), Store: a.store, Key: key, Metrics: sessions, Log: log})
	var public *url.URL
	if c.PublicURL != "" {
		public, _ = url.Parse(c.PublicURL) // checked before
	}
	g := guard.New(c.AllowedHost, c.AllowedOrigin, public, log)
	a.front = front.New(front.Config{
		Backends: []*live.Backend{{Name: a.name, Server: a.server}}, Live: a.live,
		MaxMessage: int64(c.MaxMessage), BodyBudget: max(bodyBudget, 4*int64(c.MaxMessage)), Keepalive: c.Keepalive, Buffers: &a.buffers,
		WriteTimeout: writeTimeout, ReadTimeout: readTimeout,
		PublicURL: public, Guard: g, Log: log, Metrics: requests,
	})
	a.admin = admin.Handler(reg, g)
	return a, nil
}

func (c *serveCmd) limits() live.Limits {
	l := live.DefaultLimits()
	l.Idle, l.MaxAge = c.SessionIdle, c.SessionMaxAge
	l.MaxSessions, l.MaxPerPrincipal = c.MaxSessions, c.MaxSessionsPerPrincipal
	return l
}

func (c *serveCmd) remoteConfig(name string) remote.Config {
	return remote.Config{
		Name: name, URL: c.url, Header: c.header, ForwardHeaders: c.forward,
		StartTimeout: c.StartTimeout, CallTimeout: c.CallTimeout, CallLimit: c.CallLimit, MaxMessage: int(c.MaxMessage),
	}
}

func (c *serveCmd) processConfig(name string, sup *child.Supervisor, m *process.Metrics, buffers *buf.Pool, log *slog.Logger) process.Config {
	set := make(map[string]string)
	for _, kv := range c.Env {
		k, v, _ := strings.Cut(kv, "=")
		set[k] = v
	}
	log = log.With("server", name)
	spec := child.Spec{
		Name: name, Args: c.Command, Env: child.BaseEnv(os.Environ(), c.PassEnv, set), Dir: c.Cwd,
		MaxLine: int(c.MaxMessage), Buffers: buffers,
	}
	return process.Config{
		Name: name, Shared: c.Isolation == "shared",
		Start:        func(h child.Handler) (process.Pipe, error) { return sup.Start(spec, h) },
		StartTimeout: c.StartTimeout, CallTimeout: c.CallTimeout, CallLimit: c.CallLimit,
		MaxMessage: int(c.MaxMessage), ShowStderr: !c.Insecure, Version: versionText(), Buffers: buffers, Log: log, Metrics: m,
	}
}

// serve runs until ctx is over, then drains.
func (a *app) serve(ctx context.Context, forget func(), listeners []net.Listener, adminListener net.Listener) error {
	server := a.front.HTTPServer(a.log)
	adminServer := &http.Server{Handler: a.admin, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, len(listeners)+1)
	serve := func(s *http.Server, l net.Listener) {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
			return
		}
		failed <- nil
	}
	running := len(listeners)
	for _, l := range listeners {
		go serve(server, l)
	}
	if adminListener != nil {
		running++
		go serve(adminServer, adminListener)
	}
	var err error
	select {
	case err = <-failed:
		running--
	case <-ctx.Done():
		forget()
		a.log.Info("draining: no new sessions, calls in flight may finish", "limit", a.drain.String())
	}
	a.stop(server, adminServer)
	for range running {
		<-failed
	}
	a.log.Info("stopped")
	return err
}

// stop ends everything in the order in which one thing needs the other: calls,
// sessions, what handlers still write, processes, the store last.
func (a *app) stop(server, adminServer *http.Server) {
	drain, cancel := context.WithTimeout(context.Background(), a.drain)
	a.live.Drain(drain)
	cancel()
	a.live.Close()
	flush, cancel := context.WithTimeout(context.Background(), flushTime)
	if server.Shutdown(flush) != nil {
		_ = server.Close()
	}
	cancel()
	a.server.Close()
	stop, cancel := context.WithTimeout(context.Background(), stopTime)
	if err := a.supervisor.Close(stop); err != nil {
		a.log.Warn("processes did not stop in time and were killed", "err", err)
	}
	cancel()
	if err := a.store.Close(); err != nil {
		a.log.Warn("session store not closed", "err", err)
	}
	_ = adminServer.Close()
}

// listen binds addr. A loopback address is bound in both families where both
// exist, for a client may resolve localhost to either.
func listen(addr string, log *slog.Logger) ([]net.Listener, error) {
	host, _, _ := net.SplitHostPort(addr)
	if host == "localhost" {
		host, addr = "127.0.0.1", strings.Replace(addr, "localhost", "127.0.0.1", 1)
	}
	first, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	list := []net.Listener{first}
	if host != "127.0.0.1" {
		return list, nil
	}
	_, port, _ := net.SplitHostPort(first.Addr().String())
	second, err := net.Listen("tcp", net.JoinHostPort("::1", port))
	if err != nil {
		log.Debug("not listening on ::1", "err", err)
		return list, nil
	}
	return append(list, second), nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}

func (c *serveCmd) publicBase(l net.Listener) string {
	if c.PublicURL != "" {
		return strings.TrimSuffix(c.PublicURL, "/")
	}
	return "http://" + l.Addr().String()
}

// announce prints where clients find the server, and what to paste into their
// configuration.
func announce(w io.Writer, name, base string, adminListener net.Listener) {
	snippet, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{name: map[string]string{"url": base + "/mcp"}}})
	fmt.Fprintf(w, "signalbox serves %s\n  Streamable HTTP  %s/mcp\n  HTTP+SSE         %s/sse\n", name, base, base)
	if adminListener != nil {
		fmt.Fprintf(w, "  metrics          http://%s/metrics\n", adminListener.Addr())
	}
	fmt.Fprintf(w, "for a client's configuration:\n  %s\n", snippet)
}

func newLogger(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	_ = l.UnmarshalText([]byte(level)) // an enum of the flag
	opts := &slog.HandlerOptions{Level: l}
	if f, ok := w.(*os.File); format == "auto" && ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			format = "text"
		}
	}
	if format == "text" {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}
