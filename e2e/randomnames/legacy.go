package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strconv"
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

// callParams are those of the three methods that have a plan.
type callParams struct {
	Name, URI string
	Arguments json.RawMessage
	Meta      struct{ ProgressToken json.RawMessage } `json:"_meta"`
}

func (s *legacySession) call(ctx context.Context, m message, reply sender) {
	answer := s.run(ctx, m, reply)
	s.mu.Lock()
	delete(s.running, string(m.ID))
	s.mu.Unlock()
	if ctx.Err() == nil {
		reply(answer)
	}
}

// run does all steps of a plan.
func (s *legacySession) run(ctx context.Context, m message, reply sender) message {
	var params callParams
	if err := json.Unmarshal(m.Params, &params); err != nil {
		return refuse(m, -32602, err.Error())
	}
	j, err := s.f.job(m.Method, params.Name, params.URI, params.Arguments)
	if err != nil {
		return refuse(m, -32602, err.Error())
	}
	var answers []json.RawMessage
	for i, step := range j.plan {
		if !step.asks() {
			err = s.other(ctx, j, step[0], params, reply)
		} else {
			var more []json.RawMessage
			more, err = s.ask(ctx, j.tag, i, step, reply)
			answers = append(answers, more...)
		}
		if err != nil {
			return refuse(m, -32603, err.Error())
		}
	}
	return message{ID: m.ID, Result: encodeAny(s.f.result(m.Method, params.URI, newAnswer(j, answers)))}
}

// ask sends the questions of a step, all before it waits for the first answer. An error
// of the client is an answer {error}.
func (s *legacySession) ask(ctx context.Context, tag string, at int, st step, reply sender) ([]json.RawMessage, error) {
	if s.f.apart {
		reply = s.own
	}
	var waiting []chan message
	for i, q := range st.questions(tag, at) {
		if st[i] == "barrier" {
			if err := s.f.wait(ctx, tag); err != nil {
				return nil, err
			}
			continue
		}
		if st[i] == "url" {
			q.Params["elicitationId"] = fmt.Sprintf("%s-%d-%d", tag, at, i)
		}
		c := make(chan message, 1)
		waiting = append(waiting, c)
		s.mu.Lock()
		s.lastAsked++
		id := strconv.Itoa(s.lastAsked)
		s.asked[id] = c
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.asked, id)
		}()
		reply(message{ID: json.RawMessage(id), Method: q.Method, Params: encodeAny(q.Params)})
	}
	var answers []json.RawMessage
	for _, c := range waiting {
		select {
		case m := <-c:
			if m.Error != nil {
				m.Result = encodeAny(map[string]any{"error": m.Error})
			}
			answers = append(answers, m.Result)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return answers, nil
}

// other does what is no question.
func (s *legacySession) other(ctx context.Context, j job, kind string, params callParams, reply sender) error {
	uri := s.f.name + "://" + j.tag
	s.mu.Lock()
	level, subscribed := s.level, s.subscribed[uri]
	s.mu.Unlock()
	notify := func(to sender, method string, params any) { to(message{Method: method, Params: encodeAny(params)}) }
	switch kind {
	case "barrier":
		return s.f.wait(ctx, j.tag)
	case "progress":
		if params.Meta.ProgressToken != nil {
			notify(reply, "notifications/progress", map[string]any{"progressToken": params.Meta.ProgressToken, "progress": 1, "total": 2, "message": j.tag})
		}
	case "log":
		if level != "" {
			notify(reply, "notifications/message", map[string]any{"level": "warning", "data": j.tag})
		}
	case "list-changed":
		notify(s.own, "notifications/tools/list_changed", struct{}{})
	case "updated":
		if subscribed {
			notify(s.own, "notifications/resources/updated", map[string]string{"uri": uri})
		}
	case "crash":
		os.Exit(3)
	}
	return nil
}
