package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/audit"
	"github.com/signalbox-mcp/signalbox/internal/auth"
	"github.com/signalbox-mcp/signalbox/internal/buf"
	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/front"
	"github.com/signalbox-mcp/signalbox/internal/httpd"
	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/policy"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/trace"
	"github.com/signalbox-mcp/signalbox/internal/upstream/process"
)

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
