package cluster

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Web is an MCP server over Streamable HTTP, in the test's own process, that tells what
// went wrong before it: each session has an owner, named in
// capabilities.experimental.test.owner, each call says whose it is and has a tag of its own.
//
// Its tools are those of the fake server that the tests use: echo, delay, progress, hold,
// release, ask and notify, which sends to the session's GET stream.
type Web struct {
	URL string

	mu       sync.Mutex
	sessions map[string]*webSession
	wrong    []string       // calls that came to a session of somebody else
	runs     map[string]int // tag → how often its call came
}

type webSession struct {
	owner  string
	news   chan string                     // for the GET stream
	asked  map[string]chan json.RawMessage // id of a request → who waits for its result
	held   map[string]chan struct{}
	lastID int
}

// StartWeb serves until the test ends.
func StartWeb(t testing.TB) *Web {
	t.Helper()
	w := &Web{sessions: make(map[string]*webSession), runs: make(map[string]int)}
	server := httptest.NewServer(w)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	w.URL = server.URL + "/mcp"
	return w
}

// Wrong lists what reached a session that it does not belong to.
func (s *Web) Wrong() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.wrong...)
}

// Repeated counts the calls that came more than once.
func (s *Web) Repeated() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, runs := range s.runs {
		if runs > 1 {
			n++
		}
	}
	return n
}

// Open counts the sessions that nobody has deleted.
func (s *Web) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// webMessage is what the server reads of a message.
type webMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Params struct {
		ProtocolVersion string `json:"protocolVersion"`
		Capabilities    struct {
			Experimental struct{ Test struct{ Owner string } }
		} `json:"capabilities"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

// webArguments are those of all tools.
type webArguments struct {
	Owner, Tag, Key, Method string
	N, MS                   int
}

func (s *Web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	id := r.Header.Get("Mcp-Session-Id")
	s.mu.Lock()
	session := s.sessions[id]
	s.mu.Unlock()
	var m webMessage
	if r.Method == http.MethodPost {
		if err := json.Unmarshal(body, &m); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	switch {
	case m.Method == "initialize":
		s.initialize(w, &m)
	case session == nil:
		http.Error(w, "no such session", http.StatusNotFound)
	case r.Method == http.MethodGet:
		session.stream(w, r)
	case r.Method == http.MethodDelete:
		s.mu.Lock()
		delete(s.sessions, id)
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case m.Method == "":
		s.answered(session, &m)
		w.WriteHeader(http.StatusAccepted)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "tools/call":
		s.call(w, r, session, &m)
	default:
		reply(w, m.ID, `{}`)
	}
}

func (s *Web) initialize(w http.ResponseWriter, m *webMessage) {
	id := rand.Text()
	s.mu.Lock()
	s.sessions[id] = &webSession{
		owner: m.Params.Capabilities.Experimental.Test.Owner,
		news:  make(chan string, 100), asked: make(map[string]chan json.RawMessage), held: make(map[string]chan struct{}),
	}
	s.mu.Unlock()
	w.Header().Set("Mcp-Session-Id", id)
	reply(w, m.ID, `{"protocolVersion":"`+m.Params.ProtocolVersion+`","capabilities":{"tools":{}},"serverInfo":{"name":"web","version":"1"}}`)
}

func reply(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// stream is a session's own.
func (session *webSession) stream(w http.ResponseWriter, r *http.Request) {
	out := newEvents(w)
	for {
		select {
		case text := <-session.news:
			out.send(text)
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Web) answered(session *webSession, m *webMessage) {
	s.mu.Lock()
	waiting := session.asked[string(m.ID)]
	delete(session.asked, string(m.ID))
	s.mu.Unlock()
	if waiting != nil {
		waiting <- m.Result // has room for it
	}
}

// check notes what the call says of itself.
func (s *Web) check(session *webSession, args *webArguments) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if args.Tag != "" {
		s.runs[args.Tag]++
	}
	if args.Owner != session.owner {
		s.wrong = append(s.wrong, fmt.Sprintf("a call of %q in the session of %q", args.Owner, session.owner))
		return fmt.Errorf("this is the session of %q", session.owner)
	}
	return nil
}

// events is an event stream as the answer.
type events struct {
	w     http.ResponseWriter
	flush func() error
}

func newEvents(w http.ResponseWriter) *events {
	w.Header().Set("Content-Type", "text/event-stream")
	e := &events{w, http.NewResponseController(w).Flush}
	e.flush()
	return e
}

func (e *events) send(text string) {
	fmt.Fprintf(e.w, "event: message\ndata: %s\n\n", text)
	e.flush()
}

func (s *Web) call(w http.ResponseWriter, r *http.Request, session *webSession, m *webMessage) {
	var args webArguments
	err := json.Unmarshal(m.Params.Arguments, &args)
	if err == nil {
		err = s.check(session, &args)
	}
	if err != nil {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":%q}}`, m.ID, err.Error())
		return
	}
	result := string(m.Params.Arguments)
	switch m.Params.Name {
	case "delay":
		wait(r, time.Duration(args.MS)*time.Millisecond)
	case "release":
		close(s.gate(session, args.Key))
	case "notify":
		session.news <- `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":` + result + `}}`
	case "progress", "hold", "ask":
		out := newEvents(w)
		result = s.streamed(r, out, session, m, &args)
		out.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":%s}}`, m.ID, result))
		return
	}
	reply(w, m.ID, `{"content":[],"structuredContent":`+result+`}`)
}

// streamed does what a tool does before its answer.
func (s *Web) streamed(r *http.Request, out *events, session *webSession, m *webMessage, args *webArguments) string {
	progress := func(n int) {
		if m.Params.Meta.ProgressToken != nil {
			message, _ := json.Marshal(string(m.Params.Arguments))
			out.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%s}}`, m.Params.Meta.ProgressToken, n, message))
		}
	}
	switch m.Params.Name {
	case "progress":
		for i := range args.N {
			wait(r, time.Duration(args.MS)*time.Millisecond)
			progress(i + 1)
		}
	case "hold":
		progress(1)
		select {
		case <-s.gate(session, args.Key):
		case <-r.Context().Done():
		}
	case "ask":
		answer := make(chan json.RawMessage, 1)
		s.mu.Lock()
		session.lastID++
		id := strconv.Itoa(session.lastID)
		session.asked[id] = answer
		s.mu.Unlock()
		out.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + args.Method + `","params":{}}`)
		select {
		case result := <-answer:
			return `{"result":` + string(result) + `}`
		case <-r.Context().Done():
		}
	}
	return string(m.Params.Arguments)
}

// gate is what calls that hold a key wait for.
func (s *Web) gate(session *webSession, key string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := session.held[key]
	if gate == nil {
		gate = make(chan struct{})
		session.held[key] = gate
	}
	return gate
}

func wait(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}
