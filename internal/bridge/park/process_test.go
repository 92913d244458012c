package park

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/upstream/process"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// program is a stdio server in memory, behind package process. Its tool tells by
// its arguments what it shall do: {"tag":T,"asks":N,"at_once":M} makes it ask N
// times M questions at once, each with its tag, and answer with the tag and the
// number of answers that carry it.
type program struct {
	handler child.Handler
	in      chan string // lines; closed by Stop
	done    chan struct{}
	once    sync.Once

	mu      sync.Mutex
	got     []string
	next    int
	waiting map[string]chan string // the program's requests, by id
	calls   sync.WaitGroup
	out     sync.Mutex // lines go out whole
}

func newProgram(h child.Handler) *program {
	p := &program{handler: h, in: make(chan string, 1024), done: make(chan struct{}), waiting: make(map[string]chan string)}
	go p.run()
	return p
}

func (p *program) Write(line []byte) (*child.Ticket, error) {
	select {
	case <-p.done:
		return nil, child.ErrGone
	case p.in <- string(line):
		return new(child.Ticket), nil
	}
}

func (p *program) Withdraw(*child.Ticket) bool { return false }
func (p *program) Stop()                       { p.once.Do(func() { close(p.done) }) }
func (p *program) Tail() string                { return "" }
func (p *program) Partial() string             { return "" }

func (p *program) run() {
	for {
		select {
		case <-p.done:
			p.calls.Wait()
			p.out.Lock() // nobody speaks any more
			defer p.out.Unlock()
			p.handler.Exit(child.ExitInfo{})
			return
		case line := <-p.in:
			p.line(line)
		}
	}
}

func (p *program) say(format string, args ...any) {
	p.out.Lock()
	defer p.out.Unlock()
	p.handler.Line([]byte(fmt.Sprintf(format, args...)))
}

func (p *program) line(line string) {
	m, err := wire.Parse([]byte(line))
	if err != nil {
		panic(err)
	}
	id := string(m.Bytes(m.ID))
	p.mu.Lock()
	p.got = append(p.got, line)
	answer := p.waiting[id]
	p.mu.Unlock()
	switch method := mcp.MethodOf(m.MethodName()); {
	case m.Kind == wire.Response:
		if answer != nil { // it is that to roots/list otherwise
			answer <- line
		}
	case method == mcp.Initialize:
		p.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, fullServer)
	case method == mcp.NotifInitialized: // as a well-known server does it
		p.say(`{"jsonrpc":"2.0","id":"roots","method":"roots/list"}`)
		p.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	case method == mcp.ToolsCall:
		p.calls.Go(func() { p.call(id, line) })
	case m.Kind == wire.Request:
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	}
}

func (p *program) call(id, line string) {
	var rounds, width, good int
	tag := at(line, "params", "arguments", "tag")
	fmt.Sscan(at(line, "params", "arguments", "asks"), &rounds)
	fmt.Sscan(at(line, "params", "arguments", "at_once"), &width)
	for n := range rounds {
		answers := make(chan string, width)
		for range width {
			p.mu.Lock()
			p.next++
			ask := fmt.Sprintf(`"ask-%d"`, p.next)
			p.waiting[ask] = answers
			p.mu.Unlock()
			p.say(`{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"message":%s,"requestedSchema":{}}}`, ask, tag)
		}
		for range width {
			select {
			case a := <-answers:
				if at(a, "result", "content", "tag") == tag {
					good++
				}
			case <-p.done:
				return
			}
		}
		if token := at(line, "params", "_meta", "progressToken"); token != "" {
			p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%s}}`, token, n, tag)
		}
	}
	p.say(`{"jsonrpc":"2.0","id":%s,"result":{"tag":%s,"good":%d}}`, id, tag, good)
}

// overProcesses has the rig's server be programs in memory.
func overProcesses(started func(*program)) func(*Config, *server) {
	return func(c *Config, _ *server) {
		c.Server = process.New(process.Config{
			Name: "s", StartTimeout: time.Minute, CallTimeout: time.Minute, CallLimit: time.Hour, MaxMessage: 1 << 20, Version: "9",
			Log: slog.New(slog.DiscardHandler), Metrics: process.NewMetrics(),
			Start: func(h child.Handler, _ upstream.Request) (process.Pipe, error) {
				p := newProgram(h)
				started(p)
				return p, nil
			},
		})
	}
}

// play plays a client until its call is over: it answers what it is asked, if
// that carries its tag. It returns the last reply, "" for a failure.
func (r *rig) play(s sender, c *reader, tag, params string) string {
	for {
		c.mu.Lock()
		got := c.got
		c.mu.Unlock()
		if len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "END") {
			time.Sleep(time.Millisecond)
			continue
		}
		if c.err != nil {
			return ""
		}
		reply := got[len(got)-2]
		if at(reply, "result", "resultType") != `"input_required"` {
			return reply
		}
		var answers []string
		b := []byte(reply)
		v, _ := wire.Lookup(b, "result", "inputRequests")
		for name, value := range wire.Members(b, v.Start) {
			if at(string(value.Of(b)), "method") == `"roots/list"` {
				answers = append(answers, string(name.Of(b))+`:{"roots":[]}`)
				continue
			}
			if of := at(string(value.Of(b)), "params", "message"); of != tag {
				r.t.Errorf("the client of %s was asked for %s", tag, of)
			}
			answers = append(answers, string(name.Of(b))+`:{"action":"accept","content":{"tag":`+tag+`}}`)
		}
		next := &reader{t: r.t}
		call, err := r.park.Ask(s.request(r.t, "2", "tools/call", params+`,"requestState":`+at(reply, "result", "requestState")+`,"inputResponses":{`+strings.Join(answers, ",")+`}`), next)
		if err != nil {
			return ""
		}
		next.call = call
		c = next
	}
}

// One call, with everything that package process does between.
func TestOverAProcess(t *testing.T) {
	var programs []*program
	run(t, overProcesses(func(p *program) { programs = append(programs, p) }), func(r *rig) {
		s := ann.can(`{"elicitation":{},"roots":{}}`).with(`"progressToken":"p"`)
		lists := r.listen(s, "9", `"toolsListChanged":true,"resourceSubscriptions":["u"]`)
		equal(t, "listen", lists.take()[0], ack("9", `"toolsListChanged":true,"resourceSubscriptions":["u"]`))
		const params = `"name":"t","arguments":{"tag":"one","asks":2,"at_once":2}`
		reply := r.play(s, r.ask(s, "1", "tools/call", params), `"one"`, params)
		equal(t, "reply", at(reply, "result", "tag")+at(reply, "result", "good"), `"one"4`)
		if len(programs) != 1 {
			t.Errorf("%d programs were started", len(programs))
		}
		p := programs[0]
		p.mu.Lock()
		if i := slices.IndexFunc(p.got, func(l string) bool { return strings.Contains(l, `"id":"roots"`) }); i < 0 {
			t.Error("the program's own question was not answered")
		}
		p.mu.Unlock()
		c := r.ask(s, "1", "tools/call", params)
		r.gathered()
		parked := c.last()
		p.Stop() // it exits while the call is parked
		synctest.Wait()
		again := r.ask(s, "2", "tools/call", params+`,"requestState":`+at(parked, "result", "requestState"))
		equal(t, "client", again.reason(), "-32603 process_exited")
		r.cfg.Server.Close()
	})
}

// Many clients of several principals, whose calls ask, are cancelled and die with
// their process, at once. Every call ends, what it asks reaches its own client
// only, and nothing is left.
func TestManyAtOnce(t *testing.T) {
	for seed := range uint64(8) {
		var mu sync.Mutex
		var programs []*program
		change := overProcesses(func(p *program) {
			mu.Lock()
			defer mu.Unlock()
			programs = append(programs, p)
		})
		var answered, failed int
		run(t, func(c *Config, s *server) { change(c, s); c.MaxSessionsPerPrincipal = 3; c.Question = time.Minute }, func(r *rig) {
			var all sync.WaitGroup
			for n := range 40 {
				rng := rand.New(rand.NewPCG(seed, uint64(n)))
				all.Go(func() {
					s := []sender{ann, bob, {who: person("eve")}}[n%3].can(`{"elicitation":{},"roots":{}}`)
					if rng.IntN(4) == 0 {
						s = s.with(`"progressToken":1`)
					}
					tag := fmt.Sprintf(`"t%d"`, n)
					params := fmt.Sprintf(`"name":"t","arguments":{"tag":%s,"asks":%d,"at_once":%d}`, tag, rng.IntN(3), 1+rng.IntN(3))
					time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
					c := &reader{t: t}
					call, err := r.park.Ask(s.request(t, "1", "tools/call", params), c)
					if err != nil {
						mu.Lock()
						failed++
						mu.Unlock()
						return
					}
					switch rng.IntN(8) {
					case 0:
						time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
						call.Cancel(errors.New("gone"))
					case 1:
						time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
						mu.Lock()
						if len(programs) > 0 {
							programs[rng.IntN(len(programs))].Stop()
						}
						mu.Unlock()
					}
					reply := r.play(s, c, tag, params)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case reply == "":
						failed++
					case at(reply, "result", "tag") != tag:
						t.Errorf("the client of %s got %s", tag, reply)
					default:
						answered++
					}
				})
			}
			all.Wait()
			time.Sleep(2 * time.Minute) // who was asked and has gone expires
			synctest.Wait()
			if n := r.metric("signalbox_parked_calls"); n != 0 {
				t.Errorf("%d calls are parked for ever", n)
			}
			r.cfg.Server.Close()
		})
		if answered < 10 {
			t.Errorf("only %d calls were answered, %d failed", answered, failed)
		}
	}
}
