package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/signalbox-mcp/signalbox/internal/admin"
	"github.com/signalbox-mcp/signalbox/internal/audit"
	"github.com/signalbox-mcp/signalbox/internal/auth"
	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/front"
	"github.com/signalbox-mcp/signalbox/internal/gcpace"
	"github.com/signalbox-mcp/signalbox/internal/guard"
	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/observe"
	"github.com/signalbox-mcp/signalbox/internal/policy"
	"github.com/signalbox-mcp/signalbox/internal/session"
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

func (c *serveCmd) publicBase(l net.Listener) string {
	if c.PublicURL != "" {
		return strings.TrimSuffix(c.PublicURL, "/")
	}
	if c.TLSCert != "" {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}
