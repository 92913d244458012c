package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"slices"
	"strconv"
	"sync"
)

// server is the one session that a stdio server has.
//
//	run → dispatch → request → go call → toolTable[name].run → writer.respondCall
//	               → response → the waiting ask
//	               → notification → cancel of a call
type server struct {
	o   *options
	in  *reader
	out *writer

	calls sync.WaitGroup

	mu         sync.Mutex
	running    map[string]context.CancelFunc // id as JSON → its call
	asked      map[string]chan message       // id of a request of ours → who waits for the answer
	lastAsked  int
	subscribed map[string]bool            // resource URI
	values     map[string]json.RawMessage // what the tool set kept
	gates      map[string]chan struct{}   // key → closed when it is released
	received   map[string]int             // method → how many came; responses under ""
}

func newServer(o *options, in *reader, out *writer) *server {
	return &server{
		o: o, in: in, out: out,
		running:    make(map[string]context.CancelFunc),
		asked:      make(map[string]chan message),
		subscribed: make(map[string]bool),
		values:     make(map[string]json.RawMessage),
		gates:      make(map[string]chan struct{}),
		received:   make(map[string]int),
	}
}

// run serves until the end of input. It cancels what is still running then.
func (s *server) run() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer s.calls.Wait()
	defer cancel()
	for {
		batch, err := s.in.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case isSyntax(err):
			log.Printf("not JSON: %v", err)
			s.out.respond(json.RawMessage("null"), failure(-32700, "Parse error"))
			continue
		case err != nil:
			return err
		}
		for _, m := range batch {
			s.dispatch(ctx, m)
		}
	}
}

func (s *server) dispatch(ctx context.Context, m message) {
	method := m.method()
	s.mu.Lock()
	s.received[method]++
	s.mu.Unlock()
	id, isRequest := m["id"]
	switch {
	case method == "":
		s.response(string(id), m)
	case isRequest:
		s.request(ctx, method, id, m)
	case method == "notifications/cancelled":
		s.cancelled(m["params"])
	}
}

// response hands an answer of the client to the call that asked.
func (s *server) response(id string, m message) {
	s.mu.Lock()
	waiting := s.asked[id]
	delete(s.asked, id)
	s.mu.Unlock()
	if waiting == nil {
		log.Printf("a response that nobody waits for, id %.100s", id)
		return
	}
	waiting <- m // has room for the one answer
}

func (s *server) cancelled(raw json.RawMessage) {
	var params struct{ RequestID json.RawMessage }
	if err := json.Unmarshal(raw, &params); err != nil {
		log.Printf("cancel: %v", err)
		return
	}
	s.mu.Lock()
	cancel := s.running[string(params.RequestID)]
	s.mu.Unlock()
	if cancel == nil {
		log.Printf("a cancel of nothing that runs, id %.100s", params.RequestID)
		return
	}
	cancel()
}

func (s *server) request(ctx context.Context, method string, id json.RawMessage, m message) {
	switch method {
	case "tools/call":
		ctx, cancel := context.WithCancel(ctx)
		s.mu.Lock()
		s.running[string(id)] = cancel
		s.mu.Unlock()
		s.calls.Go(func() { s.call(ctx, id, m["params"]) })
	case "test/echo":
		s.out.respond(id, answer{result: orEmpty(m["params"])})
	default:
		s.out.respond(id, s.simple(method, m["params"]))
	}
}

// simple answers what needs no goroutine.
func (s *server) simple(method string, params json.RawMessage) answer {
	switch method {
	case "initialize":
		return s.initialize(params)
	case "ping", "logging/setLevel":
		return answer{result: orEmpty(nil)}
	case "tools/list":
		return answer{result: listTools()}
	case "prompts/list":
		return answer{result: json.RawMessage(`{"prompts":[]}`)}
	case "resources/list":
		return answer{result: json.RawMessage(`{"resources":[{"uri":"test://a","name":"a"},{"uri":"test://b","name":"b"}]}`)}
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		return s.resource(method, params)
	}
	return failure(-32601, "Method not found: "+method)
}

func (s *server) initialize(raw json.RawMessage) answer {
	var params struct{ ProtocolVersion json.RawMessage }
	if err := json.Unmarshal(raw, &params); err != nil || params.ProtocolVersion == nil {
		return failure(-32602, "initialize without a protocolVersion")
	}
	version := params.ProtocolVersion
	if s.o.version != "" {
		version = quote(s.o.version)
	}
	return answer{result: json.RawMessage(`{"protocolVersion":` + string(version) +
		`,"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},` +
		`"prompts":{"listChanged":true},"logging":{}},"serverInfo":{"name":"fakeserver","version":"1"}}`)}
}

func (s *server) resource(method string, raw json.RawMessage) answer {
	var params struct{ URI string }
	if err := json.Unmarshal(raw, &params); err != nil {
		return failure(-32602, err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch method {
	case "resources/subscribe":
		s.subscribed[params.URI] = true
	case "resources/unsubscribe":
		delete(s.subscribed, params.URI)
	default:
		return answer{result: json.RawMessage(`{"contents":[{"uri":` + string(quote(params.URI)) + `,"text":"text"}]}`)}
	}
	return answer{result: orEmpty(nil)}
}

// call runs a tool and answers, unless the call was cancelled.
func (s *server) call(ctx context.Context, id, raw json.RawMessage) {
	a := s.runTool(ctx, raw)
	s.mu.Lock()
	delete(s.running, string(id))
	s.mu.Unlock()
	if ctx.Err() == nil {
		s.out.respondCall(id, a)
	}
}

func (s *server) runTool(ctx context.Context, raw json.RawMessage) answer {
	var c toolCall
	if err := json.Unmarshal(raw, &c); err != nil {
		return failure(-32602, err.Error())
	}
	c.params, c.Arguments = raw, orEmpty(c.Arguments)
	tool, ok := toolTable[c.Name]
	if !ok {
		return failure(-32602, "Unknown tool: "+c.Name)
	}
	a, err := tool.run(ctx, s, c)
	if err != nil {
		return failure(-32603, err.Error())
	}
	return a
}

// ask sends a request to the client and waits for its answer.
func (s *server) ask(ctx context.Context, method string, params json.RawMessage) (message, error) {
	waiting := make(chan message, 1)
	s.mu.Lock()
	s.lastAsked++
	id := strconv.Itoa(s.lastAsked)
	s.asked[id] = waiting
	s.mu.Unlock()
	s.out.request(json.RawMessage(id), method, params)
	select {
	case m := <-waiting:
		return m, nil
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.asked, id)
		s.mu.Unlock()
		return nil, ctx.Err()
	}
}

// gate is what calls that hold a key wait for.
func (s *server) gate(key string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := s.gates[key]
	if gate == nil {
		gate = make(chan struct{})
		s.gates[key] = gate
	}
	return gate
}

func listTools() json.RawMessage {
	list := []byte(`{"tools":[`)
	for i, name := range slices.Sorted(maps.Keys(toolTable)) {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, `{"name":`...)
		list = append(list, quote(name)...)
		list = append(list, `,"description":`...)
		list = append(list, quote(toolTable[name].help)...)
		list = append(list, `,"inputSchema":{"type":"object"}}`...)
	}
	return append(list, `]}`...)
}

// orEmpty is raw, or the empty object where there is none.
func orEmpty(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("{}")
	}
	return raw
}
