package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/signalbox-mcp/signalbox/internal/admin"
	"github.com/signalbox-mcp/signalbox/internal/audit"
	"github.com/signalbox-mcp/signalbox/internal/auth"
	"github.com/signalbox-mcp/signalbox/internal/buf"
	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/front"
	"github.com/signalbox-mcp/signalbox/internal/gcpace"
	"github.com/signalbox-mcp/signalbox/internal/guard"
	"github.com/signalbox-mcp/signalbox/internal/httpd"
	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/observe"
	"github.com/signalbox-mcp/signalbox/internal/policy"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/trace"
	"github.com/signalbox-mcp/signalbox/internal/upstream/process"
)

const (
	writeTimeout = 30 * time.Second // for each part written to a client
	readTimeout  = 30 * time.Second // for each part of a body
	flushTime    = 2 * time.Second  // for handlers to write out what they have, at the end
	bodyBudget   = 256 << 20        // bytes of all bodies that are being read; never less than four of the largest
	gcSlack      = 16 << 20         // bytes between two garbage collections, at least
	noticeTime   = 3 * time.Second  // for a balancer to see that this replica is not ready
	stopTime     = 10 * time.Second // for processes to end, a little over the two graces
)

func (c *serveCmd) run(ctx context.Context, forget func(), std streams, again reparse) error {
	specs, err := c.check()
	if err != nil {
		return usageError{err}
	}
	keys, err := c.secrets()
	if err != nil {
		return usageError{err}
	}
	log, level := newLogger(std.err, c.LogLevel, c.LogFormat)
	c.warn(specs, log)
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
	secure, err := c.tlsFlags.config(log)
	if err != nil {
		return usageError{err}
	}
	a, err := c.build(specs, keys, listeners[0], std.err, logs{log, level})
	if err != nil {
		return err
	}
	a.tls = secure
	gcpace.Start(gcSlack)
	if err := a.awaitStore(ctx, c); err != nil {
		a.close()
		return err
	}
	announce(std.err, names(specs), c.publicBase(listeners[0]), adminListener)
	watch := a.hangups
	if c.Config != "" {
		watch = func() func() { return a.watch(c, again) }
	}
	defer watch()()
	return a.serve(ctx, forget, listeners, adminListener)
}

// app is everything that runs.
type app struct {
	drain      time.Duration
	log        *slog.Logger
	supervisor *child.Supervisor
	processes  *process.Metrics
	policies   *policy.Metrics
	store      session.Store
	shared     *shared // nil with sessions in memory
	live       *live.Manager
	front      *front.Front
	auth       *auth.Authenticator
	audit      *audit.Log // nil: none
	eras       *eras
	tls        *tls.Config // of the listener for clients; nil: plain
	showStderr bool        // to clients, in errors
	buffers    buf.Pool    // of front, process and child: whoever is done with a message gives its buffer back
	admin      http.Handler
	metrics    *prometheus.Registry
	trace      *trace.Tracer // nil: none

	mu      sync.Mutex
	servers []*served // those that are offered, in the configuration's order
}

// logs is the log with its level.
type logs struct {
	*slog.Logger
	level *slog.LevelVar
}

func (c *serveCmd) build(specs []spec, keys secrets, l net.Listener, std io.Writer, said logs) (_ *app, err error) {
	log := said.Logger
	reg := prometheus.NewRegistry()
	sessions := live.NewMetrics()
	var recorder *observe.Recorder // nobody can look where there is no admin listener
	if c.AdminListen != "" {
		recorder = observe.New()
	}
	a := &app{drain: c.Drain, log: log, showStderr: !c.Insecure && !c.authorized(), processes: process.NewMetrics(), policies: policy.NewMetrics(), metrics: reg}
	if a.eras, err = newEras(keys.state, keys.old); err != nil {
		return nil, err
	}
	a.eras.maxSessions = c.MaxSessions
	a.eras.alone = c.Insecure && !c.authorized()
	requests, credentials := front.NewMetrics(sessions.Streams), auth.NewMetrics()
	tell(recorder, a, requests)
	reg.MustRegister(a.processes, a.policies, a.eras.parked, a.eras.dialogs, sessions, requests, credentials,
		buildInfo(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.auth, err = c.authenticator(l, credentials, log); err != nil {
		return nil, usageError{err}
	}
	if c.AuditLog != "" {
		if a.audit, err = audit.Open(c.AuditLog, audit.Options{Stderr: std, Log: log}); err != nil {
			return nil, usageError{fmt.Errorf("--audit-log: %w", err)}
		}
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "signalbox_audit_lost_total", Help: "Lines of the audit log that could not be written."},
			func() float64 { return float64(a.audit.Lost()) }))
	}
	if a.trace, err = c.tracer(log); err != nil {
		return nil, usageError{err}
	}
	if a.supervisor, err = child.NewSupervisor(child.Options{MaxProcesses: c.MaxProcesses, Logger: log}); err != nil {
		return nil, err
	}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "signalbox_processes", Help: "Server processes, those that are stopping counted."},
		func() float64 { return float64(a.supervisor.Running()) }))

	manager := live.Config{Limits: c.limits(), Key: keys.state, Metrics: sessions, Log: log, Audit: a.audit, Observe: recorder, Trace: a.trace}
	peers := new(lateHandler)
	if c.inMemory() {
		a.store = session.NewMemory()
	} else {
		if a.shared, err = c.share(keys, reg, peers, log); err != nil {
			return nil, err
		}
		a.store = a.shared.store
		if keys.random {
			a.store = lonely{a.store}
		}
		manager.Replica = a.shared.node.ID()
		a.eras.replica = manager.Replica
	}
	manager.Store = a.store
	a.live = live.NewManager(manager)
	var public *url.URL
	if c.PublicURL != "" {
		public, _ = url.Parse(c.PublicURL) // checked before
	}
	g := guard.New(c.AllowedHost, c.AllowedOrigin, public, log)
	clients := g
	if a.auth.Enabled() {
		clients = g.AnyHost()
	}
	clientSide := front.Config{
		Live: a.live, MaxMessage: int64(c.MaxMessage), BodyBudget: max(bodyBudget, 4*int64(largest(specs, c.MaxMessage))),
		RequestRate: c.MaxRequestsPerSecond, Keepalive: c.Keepalive, Buffers: &a.buffers, WriteTimeout: writeTimeout, ReadTimeout: readTimeout,
		PublicURL: public, Proxies: c.proxies, Guard: clients, Auth: a.auth, Log: log, Metrics: requests, Timed: recorder.On(), Trace: a.trace,
	}
	if a.shared != nil {
		clientSide.Peers, clientSide.Ready = a.shared.node, a.shared.ready
	}
	a.front = front.New(clientSide)
	peers.set(http.HandlerFunc(a.front.ServePeer))
	a.offer(specs)
	a.admin = admin.Handler(a.adminConfig(reg, g, keys.admin, recorder, said.level))
	return a, nil
}

func (c *serveCmd) limits() live.Limits {
	l := live.DefaultLimits()
	l.Idle, l.MaxAge = c.SessionIdle, c.SessionMaxAge
	l.MaxSessions, l.MaxPerPrincipal = c.MaxSessions, c.MaxSessionsPerPrincipal
	l.AllCalls, l.PrincipalCalls = c.MaxCalls, c.MaxCallsPerPrincipal
	return l
}

// serve runs until ctx is over, then drains.
func (a *app) serve(ctx context.Context, forget func(), listeners []net.Listener, adminListener net.Listener) error {
	server := a.front.HTTPServer(a.log, a.tls)
	adminServer := &http.Server{Handler: a.admin, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, len(listeners)+1)
	serve := func(s interface{ Serve(net.Listener) error }, l net.Listener) {
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
func (a *app) stop(server *httpd.Server, adminServer *http.Server) {
	drain, cancel := context.WithTimeout(context.Background(), a.drain)
	shut, giveUp := context.WithCancel(context.Background())
	done := make(chan error, 1)
	if a.shared != nil {
		// A balancer has a moment to notice; then it finds nobody here and goes to
		// another replica, before a request is sent.
		a.live.StartDrain()
		notice := time.NewTimer(min(noticeTime, a.drain/4))
		<-notice.C
		go func() { done <- server.Shutdown(shut) }()
	}
	a.live.Drain(drain)
	cancel()
	a.live.Close()
	if a.shared == nil {
		go func() { done <- server.Shutdown(shut) }()
	}
	flush := time.AfterFunc(flushTime, giveUp)
	if <-done != nil {
		_ = server.Close()
	}
	flush.Stop()
	giveUp()
	a.close()
	_ = adminServer.Close()
}

// close ends what build has made, all or some of it: servers and processes first, the store last.
func (a *app) close() {
	if a.shared != nil {
		leave, cancel := context.WithTimeout(context.Background(), flushTime)
		a.shared.node.Leave(leave)
		cancel()
	}
	if a.live != nil {
		a.live.Close()
		a.retireAll()
	}
	a.auth.Close()
	if a.supervisor != nil {
		stop, cancel := context.WithTimeout(context.Background(), stopTime)
		if err := a.supervisor.Close(stop); err != nil {
			a.log.Warn("processes did not stop in time and were killed", "err", err)
		}
		cancel()
	}
	if a.store != nil {
		if err := a.store.Close(); err != nil {
			a.log.Warn("session store not closed", "err", err)
		}
	}
	send, cancel := context.WithTimeout(context.Background(), traceTime)
	defer cancel()
	if err := a.trace.Close(send); err != nil {
		a.log.Warn("the last traces were not sent", "err", err)
	}
	if err := a.audit.Close(); err != nil { // after all that could have a line for it
		a.log.Warn("audit log not closed", "err", err)
	}
}

// storeWait is how long the start waits for a store that is not required.
const storeWait = 3 * time.Second

// awaitStore waits for the store at start. One that is required and not there
// is an error; without any other that is not there, Signalbox is not ready.
func (a *app) awaitStore(ctx context.Context, c *serveCmd) error {
	if a.shared == nil {
		return nil
	}
	limit := storeWait
	if c.StoreRequired {
		limit = c.StartTimeout
	}
	err := a.shared.await(ctx, limit)
	switch {
	case err == nil || ctx.Err() != nil:
		return nil
	case c.StoreRequired:
		return fmt.Errorf("--store-required: the session store was not reached in %s: %w", limit, err)
	}
	a.log.Error("not ready: the session store cannot be reached; trying on", "err", err)
	return nil
}

// lateHandler is a handler that is set after it is in use.
type lateHandler struct{ handler atomic.Pointer[http.Handler] }

func (l *lateHandler) set(h http.Handler) { l.handler.Store(&h) }

func (l *lateHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := l.handler.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	http.Error(w, "this replica is starting", http.StatusServiceUnavailable)
}

func (c *serveCmd) publicBase(l net.Listener) string {
	if c.PublicURL != "" {
		return strings.TrimSuffix(c.PublicURL, "/")
	}
	if c.TLSCert != "" {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}
