package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync"
)

// legacyHTTP is Streamable HTTP with sessions. Every request is answered by an event
// stream, which carries the questions of its call too. A client that leaves cancels nothing.
type legacyHTTP struct {
	f *fixture

	mu       sync.Mutex
	sessions map[string]*httpSession
}

// httpSession is a session with its own stream.
type httpSession struct {
	*legacySession
	ctx context.Context
	end context.CancelFunc
	own chan message // what waits for the GET stream
}

func newLegacyHTTP(f *fixture) *legacyHTTP {
	return &legacyHTTP{f: f, sessions: make(map[string]*httpSession)}
}

func (h *legacyHTTP) open() (string, *httpSession) {
	s := &httpSession{own: make(chan message, 100)}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.legacySession = newLegacySession(h.f, func(m message) {
		select {
		case s.own <- m:
		default:
			log.Printf("nobody reads the session's stream: %s is lost", m.Method)
		}
	})
	id := rand.Text()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions[id] = s
	return id, s
}

func (h *legacyHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m message
	if r.Method == http.MethodPost {
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(raw, &m)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	id := r.Header.Get("Mcp-Session-Id")
	h.mu.Lock()
	s := h.sessions[id]
	h.mu.Unlock()
	switch {
	case m.Method == "initialize" && id == "":
		id, s = h.open()
		w.Header().Set("Mcp-Session-Id", id)
		h.post(w, r, s, m)
	case id == "":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: no session"},"id":null}`)
	case s == nil:
		http.Error(w, "no such session", http.StatusNotFound)
	case r.Method == http.MethodPost:
		h.post(w, r, s, m)
	case r.Method == http.MethodGet:
		s.stream(w, r)
	case r.Method == http.MethodDelete:
		h.mu.Lock()
		delete(h.sessions, id)
		h.mu.Unlock()
		s.end()
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// post returns when the request has its answer, or was cancelled, or the client has left.
func (h *legacyHTTP) post(w http.ResponseWriter, r *http.Request, s *httpSession, m message) {
	messages := make(chan message, 100) // a call that nobody reads any more has room
	over := s.take(s.ctx, m, func(m message) { messages <- m })
	if m.ID == nil || m.Method == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	startEvents(w)
	for {
		select {
		case next := <-messages:
			writeEvent(w, next)
		case <-over:
			for len(messages) > 0 {
				writeEvent(w, <-messages)
			}
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *httpSession) stream(w http.ResponseWriter, r *http.Request) {
	startEvents(w)
	for {
		select {
		case m := <-s.own:
			writeEvent(w, m)
		case <-s.ctx.Done():
			return
		case <-r.Context().Done():
			return
		}
	}
}

func startEvents(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush(w)
}

func writeEvent(w http.ResponseWriter, m message) {
	fmt.Fprintf(w, "event: message\ndata: %s\n\n", encode(m))
	flush(w)
}

func flush(w http.ResponseWriter) {
	if err := http.NewResponseController(w).Flush(); err != nil {
		log.Print(err)
	}
}
