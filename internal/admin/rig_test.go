package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/guard"
	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/observe"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// echoServer answers every request at once.
type echoServer struct{}

func (echoServer) Open(init upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	replyTo(init, reply, `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"fake","version":"1"}}`)
	return &echoConn{events: events}, nil
}

func (echoServer) Close() {}

type echoConn struct{ events upstream.Sink }

type done struct{}

func (done) Cancel(error) {}

func (c *echoConn) Start(req upstream.Request, s upstream.Sink) (upstream.Call, error) {
	replyTo(req, s, `{"text":"hunter2"}`)
	return done{}, nil
}

func replyTo(req upstream.Request, s upstream.Sink, result string) {
	s.Deliver(upstream.Frame{Data: wire.AppendResult(nil, req.Msg.Bytes(req.Msg.ID), []byte(result)), Relation: upstream.Reply})
	s.End(nil)
}

func (c *echoConn) Send(upstream.Request) error { return nil }

func (c *echoConn) End(reason error) { c.events.End(reason) }

// somebody is a principal as package auth makes them.
type somebody string

func (s somebody) Key() string    { return "key/" + string(s) }
func (s somebody) String() string { return "key " + string(s) }

// rig is a handler with a manager of sessions behind it.
type rig struct {
	t       testing.TB
	live    *live.Manager
	backend *live.Backend
	rec     *observe.Recorder
	handler http.Handler
}

func newRig(t testing.TB, change func(*Config)) *rig {
	return newRigOf(t, live.NewMetrics(), nil, change)
}

func newRigOf(t testing.TB, metrics *live.Metrics, limit func(*live.Limits), change func(*Config)) *rig {
	limits := live.DefaultLimits()
	if limit != nil {
		limit(&limits)
	}
	store := session.NewMemory()
	log := slog.New(slog.DiscardHandler)
	r := &rig{t: t, rec: observe.New(), backend: &live.Backend{Name: "srv", Server: echoServer{}}}
	r.live = live.NewManager(live.Config{
		Limits: limits, Store: store, Key: []byte("a key of thirty-two bytes or more"), Metrics: metrics, Log: log, Observe: r.rec,
	})
	t.Cleanup(func() {
		r.live.Close()
		store.Close()
	})
	cfg := Config{
		Metrics: prometheus.NewRegistry(), Guard: guard.New(nil, []string{"https://app.example.com"}, nil, log), Live: r.live, Recorder: r.rec, Version: "v1", Log: log, Level: new(slog.LevelVar),
		Servers: func() []Server { return []Server{{Name: "srv", Kind: "stdio", State: "working"}} },
	}
	if change != nil {
		change(&cfg)
	}
	r.handler = Handler(cfg)
	return r
}

// open begins a session and makes a call.
func (r *rig) open(client string) *live.Session {
	r.t.Helper()
	name, _ := json.Marshal(client)
	s, rd, err := r.live.Open(r.backend, somebody("alice").Key(), live.TakesBoth,
		r.request(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":`+string(name)+`,"version":"2"}}}`))
	if err != nil {
		r.t.Fatal(err)
	}
	rd.Close()
	if err := s.Register(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	if rd, err = s.Call(live.TakesBoth, []upstream.Request{r.request(`{"jsonrpc":"2.0","id":"<i>","method":"tools/call","params":{"name":"secret"}}`)}); err != nil {
		r.t.Fatal(err)
	}
	rd.Close()
	return s
}

func (r *rig) request(text string) upstream.Request {
	r.t.Helper()
	msg, err := wire.Parse([]byte(text))
	if err != nil {
		r.t.Fatal(err)
	}
	req := upstream.NewRequest(msg)
	req.Principal = somebody("alice")
	return req
}

// ask sends a request; headers are "Name: value".
func (r *rig) ask(method, path string, headers ...string) *httptest.ResponseRecorder {
	r.t.Helper()
	req := httptest.NewRequestWithContext(r.t.Context(), method, "http://127.0.0.1:9090"+path, nil)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
		} else {
			req.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	return w
}

// read decodes what a path answers, and wants no member that the type has not.
func (r *rig) read(path string, into any) {
	r.t.Helper()
	w := r.ask("GET", path)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
		r.t.Fatalf("%s: %d %v", path, w.Code, w.Header())
	}
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		r.t.Fatalf("%s: %v", path, err)
	}
}

func alone(context.Context) ([]Replica, error) {
	return []Replica{{ID: "a", Address: "10.0.0.1:7", Self: true, LeaseSeconds: 9.5}, {ID: "b", Address: "10.0.0.2:7", LeaseSeconds: 7}}, nil
}

func cutOff(ctx context.Context) ([]Replica, error) {
	list, _ := alone(ctx)
	return list[:1], errors.New("dial tcp 10.0.0.9: secret detail")
}
