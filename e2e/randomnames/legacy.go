package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"slices"
	"sync"
)

// revisions that are served in this era, the newest first.
var revisions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// message is any JSON-RPC message.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// sender writes a message to one stream.
type sender func(message)

// legacySession is a session of the handshake era.
type legacySession struct {
	f   *fixture
	own sender // for what belongs to no call

	calls sync.WaitGroup

	mu          sync.Mutex
	initialized bool
	level       string
	subscribed  map[string]bool               // URI
	running     map[string]context.CancelFunc // id as JSON → its call
	asked       map[string]chan message       // id of a question → its call
	lastAsked   int
}

func newLegacySession(f *fixture, own sender) *legacySession {
	return &legacySession{
		f: f, own: own, subscribed: make(map[string]bool),
		running: make(map[string]context.CancelFunc), asked: make(map[string]chan message),
	}
}

func serveLegacyStdio(f *fixture, in io.Reader, out io.Writer) error {
	var mu sync.Mutex
	s := newLegacySession(f, func(m message) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := out.Write(append(encode(m), '\n')); err != nil {
			log.Print(err)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer s.calls.Wait()
	defer cancel()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return fmt.Errorf("%w, in %.200q", err, line)
		}
		s.take(ctx, m, s.own)
	}
}

func encode(m message) []byte {
	m.JSONRPC = "2.0"
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // it is made of JSON
	}
	return b
}

func encodeAny(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is made of maps and strings
	}
	return b
}

// take handles a message of the client; a request's answer goes to reply, at once or
// later. What it returns is closed when nothing more will come.
func (s *legacySession) take(ctx context.Context, m message, reply sender) <-chan struct{} {
	over := make(chan struct{})
	switch {
	case m.Method == "":
		s.answered(m)
	case m.ID == nil:
		if m.Method == "notifications/cancelled" {
			s.cancelled(m.Params)
		}
	case m.Method == "tools/call" || m.Method == "prompts/get" || m.Method == "resources/read":
		ctx, cancel := context.WithCancel(ctx)
		s.mu.Lock()
		s.running[string(m.ID)] = cancel
		s.mu.Unlock()
		s.calls.Go(func() {
			defer close(over)
			defer cancel()
			s.call(ctx, m, reply)
		})
		return over
	default:
		reply(s.simple(m))
	}
	close(over)
	return over
}

func (s *legacySession) answered(m message) {
	s.mu.Lock()
	waiting := s.asked[string(m.ID)]
	delete(s.asked, string(m.ID))
	s.mu.Unlock()
	if waiting == nil {
		log.Printf("an answer that nobody waits for: %s", m.ID)
		return
	}
	waiting <- m // has room for the one answer
}

func (s *legacySession) cancelled(raw json.RawMessage) {
	var params struct{ RequestID json.RawMessage }
	if err := json.Unmarshal(raw, &params); err != nil {
		log.Printf("cancel: %v", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.running[string(params.RequestID)]; cancel != nil {
		cancel()
	}
}

func refuse(m message, code int, text string) message {
	return message{ID: m.ID, Error: encodeAny(map[string]any{"code": code, "message": text})}
}

// simple answers what is done at once.
func (s *legacySession) simple(m message) message {
	var params struct{ ProtocolVersion, Level, URI string }
	if len(m.Params) > 0 {
		if err := json.Unmarshal(m.Params, &params); err != nil {
			return refuse(m, -32602, err.Error())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.f.list(m.Method)
	result := map[string]any{}
	switch {
	case m.Method == "initialize" && s.initialized:
		return refuse(m, -32600, "initialized already")
	case m.Method == "initialize":
		s.initialized = true
		version := revisions[0]
		if slices.Contains(revisions, params.ProtocolVersion) {
			version = params.ProtocolVersion
		}
		result = map[string]any{
			"protocolVersion": version, "capabilities": s.f.capabilities(),
			"serverInfo": map[string]string{"name": "randomnames", "version": "1"},
		}
	case m.Method == "ping":
	case !s.initialized:
		return refuse(m, -32600, "not initialized")
	case list != nil:
		result = list
	case m.Method == "logging/setLevel":
		s.level = params.Level
	case m.Method == "resources/subscribe":
		s.subscribed[params.URI] = true
	case m.Method == "resources/unsubscribe":
		delete(s.subscribed, params.URI)
	default:
		return refuse(m, -32601, "Method not found: "+m.Method)
	}
	return message{ID: m.ID, Result: encodeAny(result)}
}
