package process

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// A transcript (testdata/*.txtar) is a conversation, read from top to bottom.
// After a title, its first section says "isolation shared" or "isolation
// session". Each section is a step; "//" begins a comment line.
//
//	-- open a b --           sessions a and b begin; the handshake is not shown
//	-- a sends --            requests, notifications and responses of client a
//	-- server gets --        all that the server has read since this was last said
//	-- server says --        lines on its stdout
//	-- a gets --             all that a's sinks have taken since this was last said
//	-- drops --              "reason count" of what was dropped since this was last said
//	-- wait 1s --            time passes
//	-- a takes json --       a's calls from now on take no stream (-- a takes streams --)
//	-- a listens --          a reads its session's own stream (-- a leaves --)
//	-- a leaves #2 --        a's call 2 has no reader any more
//	-- a cancels #2 --       Signalbox cancels a's call 2 (its time is up, its client is gone)
//	-- a ends --             session a ends
//	-- server stalls --      it reads nothing (-- server reads --)
//	-- server exits 3 --     it ends with code 3
//
// What a client gets begins with where: "#2 reply" is the reply to the second
// request that it sent, "#2 own" a message that provably belongs to that call,
// "#2 loose" one that does not; "events loose" and "events later" came to the
// session's own stream, to be read now or later; "#2 error" is the end without
// a reply. "refused" is the error of a message that was not accepted.
//
// {J, is short for {"jsonrpc":"2.0", and $name for a ROUTE: where it is first
// read it may be any, from then on it is that one, and two names are never one
// ROUTE. "server" is the newest process.
//
// Nothing may be left unread. At the end the server sends a sentinel down every
// stream, and each must be the next thing that comes out there: what a
// transcript does not show was not delivered.
type script struct {
	t       *testing.T
	w       *world
	step    string
	clients map[string]*scriptClient
	routes  map[string]string // by name
	drops   map[DropReason]int
	seen    int // processes whose handshake is over
}

type scriptClient struct {
	name   string
	conn   upstream.Conn
	events *checkingSink
	sinks  []*checkingSink // of its calls, in the order sent; 0 is initialize
	calls  []upstream.Call
	got    []string
	json   bool
	ended  bool
}

var isStep = regexp.MustCompile(`^-- (.+) --$`)

func runTranscript(t *testing.T, text string) {
	s := &script{t: t, clients: make(map[string]*scriptClient), routes: make(map[string]string), drops: make(map[DropReason]int)}
	defer s.finish()
	var body []string
	flush := func() {
		if s.step != "" && !t.Failed() {
			s.run(strings.Fields(s.step), body)
		}
		body = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if m := isStep.FindStringSubmatch(line); m != nil {
			flush()
			s.step = m[1]
		} else if line != "" && !strings.HasPrefix(line, "//") && s.step != "" {
			body = append(body, strings.ReplaceAll(line, "{J,", `{"jsonrpc":"2.0",`))
		}
	}
	flush()
	if !t.Failed() {
		s.sentinels()
	}
}

// finish ends everything, so that nothing outlives the transcript.
func (s *script) finish() {
	if s.w == nil {
		s.t.Fatal("the transcript does not say which isolation")
	}
	s.w.Close()
	time.Sleep(time.Minute)
	s.w.checkEmpty()
	for _, c := range s.clients {
		for _, sink := range append(c.sinks, c.events) {
			if ends, _, _ := sink.state(); ends != 1 {
				s.t.Errorf("%s: %d ends", sink.name, ends)
			}
		}
	}
}

func (s *script) run(words, body []string) {
	s.t.Helper()
	synctest.Wait()
	switch c := s.clients[words[0]]; {
	case words[0] == "isolation":
		s.w = newWorld(s.t, words[1] == "shared")
	case words[0] == "open":
		for _, name := range words[1:] {
			s.open(name)
		}
	case words[0] == "wait":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(d)
	case words[0] == "drops":
		s.checkDrops(body)
	case words[0] == "server":
		s.runServer(words[1:], body)
	default:
		if c == nil {
			c = s.newClient(words[0])
		}
		s.runClient(c, words[1:], body)
	}
	synctest.Wait()
}

func (s *script) runServer(words, body []string) {
	s.t.Helper()
	switch p := s.w.proc(); words[0] {
	case "says":
		for _, line := range body {
			p.says(s.expand(line))
			synctest.Wait()
		}
	case "gets":
		s.expect("the server", p.got(), body)
	case "stalls":
		p.stall()
	case "reads":
		p.resume()
	case "exits":
		code, _ := strconv.Atoi(words[1])
		p.exits(child.ExitInfo{Code: code})
	default:
		s.t.Fatalf("unknown step %q", s.step)
	}
}

func (s *script) runClient(c *scriptClient, words, body []string) {
	s.t.Helper()
	switch words[0] {
	case "sends":
		for _, line := range body {
			s.send(c, s.expand(line))
			synctest.Wait()
		}
	case "gets":
		got := c.got
		c.got = nil
		s.expect("client "+c.name, got, body)
	case "takes":
		c.json = words[1] == "json"
	case "listens":
		c.events.set(true)
	case "leaves":
		sink := c.events
		if len(words) > 1 {
			sink = c.sinks[number(words[1])]
		}
		sink.set(false)
	case "cancels":
		c.calls[number(words[1])].Cancel(upstream.ErrCancelled)
	case "ends":
		c.ended = true
		c.conn.End(upstream.ErrClosed)
		s.expect("client "+c.name, slices.DeleteFunc(c.got, func(l string) bool { return strings.HasPrefix(l, "events error") }), body)
		c.got = nil
	default:
		s.t.Fatalf("unknown step %q", s.step)
	}
}

func number(word string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(word, "#"))
	if err != nil {
		panic(err)
	}
	return n
}

func (s *script) newClient(name string) *scriptClient {
	c := &scriptClient{name: name}
	c.events = newEventsSink(s.t, name+" events", func() *hub { return c.hub() })
	c.events.note = c.note("events")
	s.clients[name] = c
	return c
}

func (c *scriptClient) hub() *hub {
	if conn, ok := c.conn.(*conn); ok {
		return conn.hub
	}
	return nil
}

func (c *scriptClient) note(where string) func(string, string, []byte) {
	return func(_, what string, b []byte) { c.got = append(c.got, where+" "+what+" "+string(b)) }
}

// send passes what a client sent to the code under test.
func (s *script) send(c *scriptClient, line string) {
	s.t.Helper()
	msg, err := wire.Parse([]byte(line))
	if err != nil {
		s.t.Fatalf("%s: %v", line, err)
	}
	req := upstream.NewRequest(msg)
	if msg.Kind != wire.Request {
		if err := c.conn.Send(req); err != nil {
			c.got = append(c.got, "refused "+err.Error())
		}
		return
	}
	n := len(c.sinks)
	if c.conn == nil && req.Method != mcp.Initialize {
		s.t.Fatalf("client %s begins with %s", c.name, line)
	}
	sink := newCallSink(s.t, fmt.Sprintf("%s #%d", c.name, n), c.hub)
	sink.note = c.note(fmt.Sprintf("#%d", n))
	sink.reads = !c.json
	var call upstream.Call
	if c.conn == nil {
		c.conn, err = s.w.Open(req, sink, c.events)
	} else {
		call, err = c.conn.Start(req, sink)
	}
	if err != nil {
		c.got = append(c.got, fmt.Sprintf("#%d refused %s", n, upstream.RPCError(err).Reason))
		if c.conn == nil {
			delete(s.clients, c.name)
		}
		return
	}
	c.sinks, c.calls = append(c.sinks, sink), append(c.calls, call)
}

// open runs the handshake of a session with all that the server can offer.
func (s *script) open(name string) {
	s.t.Helper()
	c := s.newClient(name)
	s.send(c, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	synctest.Wait()
	p := s.w.proc()
	if s.w.spawned() > s.seen {
		s.seen = s.w.spawned()
		s.answerInitialize(p)
	}
	s.send(c, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	synctest.Wait()
	c.got = nil
	p.got()
}

func (s *script) answerInitialize(p *fakeProcess) {
	s.t.Helper()
	in := p.got()
	if len(in) != 1 {
		s.t.Fatalf("server got %q instead of initialize", in)
	}
	msg, err := wire.Parse([]byte(in[0]))
	if err != nil {
		s.t.Fatal(err)
	}
	p.says(string(wire.AppendResult(nil, msg.Bytes(msg.ID), []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`))))
	synctest.Wait()
}
