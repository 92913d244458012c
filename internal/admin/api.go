package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/observe"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

type api struct{ cfg Config }

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that is gone needs no report
}

func (a *api) servers(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, ServerList{a.cfg.Servers()})
}

func (a *api) sessions(w http.ResponseWriter, _ *http.Request) {
	now := time.Now()
	views := a.cfg.Live.Views()
	list := make([]Session, len(views))
	for i := range views {
		list[i] = sessionOf(&views[i], now)
	}
	answer(w, http.StatusOK, SessionList{list})
}

func sessionOf(v *live.View, now time.Time) Session {
	s := Session{
		Session: v.Hash, Server: v.Server, Principal: v.Principal, Transport: string(v.Transport), Era: "handshake",
		Revision: string(v.Revision), State: "opening", Client: v.Client, ClientVersion: v.ClientVersion,
		Created: v.Created.UTC(), AgeSeconds: seconds(now.Sub(v.Created)),
		LastSeen: v.LastSeen.UTC(), IdleSeconds: seconds(now.Sub(v.LastSeen)),
		Calls: v.Calls, Streams: v.Streams,
	}
	if v.Accepted {
		s.State = "open"
	}
	return s
}

// seconds is d with milliseconds; what the clock of another goroutine is ahead is 0.
func seconds(d time.Duration) float64 { return max(d.Truncate(time.Millisecond), 0).Seconds() }

func millis(d time.Duration) *float64 {
	ms := float64(d.Microseconds()) / 1000
	return &ms
}

func (a *api) session(w http.ResponseWriter, r *http.Request) {
	view, messages, err := a.cfg.Live.Inspect(r.PathValue("hash"))
	if err != nil {
		noSession(w, err)
		return
	}
	detail := SessionDetail{Session: sessionOf(&view, time.Now()), Messages: make([]Message, len(messages))}
	for i := range messages {
		detail.Messages[i] = messageOf(&messages[i])
	}
	answer(w, http.StatusOK, detail)
}

func messageOf(m *observe.Message) Message {
	out := Message{
		Time: m.Time().UTC(), Direction: m.Direction.String(), Kind: m.Kind.String(), Method: m.Method(), ID: m.ID(), Bytes: m.Size(), Reason: m.Reason(),
	}
	if m.Kind == wire.Response && m.Direction == observe.ToClient {
		out.Millis = millis(m.Duration)
	}
	return out
}

func (a *api) end(w http.ResponseWriter, r *http.Request) {
	if err := a.cfg.Live.EndByHash(r.PathValue("hash")); err != nil {
		noSession(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func noSession(w http.ResponseWriter, err error) {
	if errors.Is(err, live.ErrAmbiguous) {
		answer(w, http.StatusConflict, Failure{"several sessions have this hash; nothing was done"})
		return
	}
	answer(w, http.StatusNotFound, Failure{"this process has no session of this hash; it may have ended, or be at another replica"})
}

func (a *api) replicas(w http.ResponseWriter, r *http.Request) {
	var list ReplicaList
	if a.cfg.Replicas == nil {
		list.Replicas = []Replica{{Self: true}}
	} else {
		var err error
		if list.Replicas, err = a.cfg.Replicas(r.Context()); err != nil {
			list.Error = "the store is out of reach; these are the replicas known from before"
		}
	}
	for i := range list.Replicas {
		if list.Replicas[i].Self {
			list.Replicas[i].Version = a.cfg.Version
		}
	}
	answer(w, http.StatusOK, list)
}

func (a *api) series(w http.ResponseWriter, _ *http.Request) {
	buckets := a.cfg.Recorder.Series(time.Now())
	out := Series{BucketSeconds: observe.BucketWidth.Seconds(), Buckets: make([]Bucket, len(buckets))}
	for i, b := range buckets {
		out.Buckets[i] = Bucket{Start: b.Start, Calls: b.Calls, Measured: b.Measured}
		if b.Measured > 0 {
			out.Buckets[i].MedianMS, out.Buckets[i].P99MS, out.Buckets[i].MaxMS = millis(b.Median), millis(b.P99), millis(b.Max)
		}
	}
	answer(w, http.StatusOK, out)
}

func (a *api) refusals(w http.ResponseWriter, _ *http.Request) {
	incidents := a.cfg.Recorder.Incidents()
	list := make([]Refusal, len(incidents))
	for k, i := range incidents {
		list[k] = Refusal{
			What: string(i.What), Reason: i.Reason, Server: i.Server, Session: i.Session, Detail: i.Detail,
			First: i.First.UTC(), Last: i.Last.UTC(), Count: i.Count,
		}
	}
	answer(w, http.StatusOK, RefusalList{list})
}
