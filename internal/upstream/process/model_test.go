package process

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// modelIDs collide within and between sessions, and with what a ROUTE looks like.
var modelIDs = []string{`1`, `"1"`, `0`, `-1`, `9007199254740993`, `9007199254740992`, `""`, `"é\u00e9|n:1"`, `"AAAAAAAAAAAAAAAAAAAAAA.1|n:1"`}

const listChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

// modelServer answers every request with its params, in random order, and
// repeats, invents and chats besides.
type modelServer struct {
	p   *fakeProcess
	rnd *rand.Rand
	ids []string // wire ids seen, to be repeated
}

func (m *modelServer) react(_ *fakeProcess, line string) {
	msg, err := wire.Parse([]byte(line))
	if err != nil {
		panic(err)
	}
	if msg.Kind != wire.Request {
		return
	}
	id := idOf(line)
	reply := string(wire.AppendResult(nil, []byte(id), msg.Bytes(msg.Params)))
	if mcp.MethodOf(msg.MethodName()) == mcp.Initialize {
		m.p.says(strings.Replace(reply, `"protocolVersion"`, `"x":1,"protocolVersion"`, 1))
		return
	}
	m.ids = append(m.ids, id)
	progress := ""
	if tok := msg.Bytes(msg.P.MetaToken); tok != nil {
		progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(tok) + `,"message":` + string(msg.Bytes(msg.P.Name)) + `,"progress":1}}`
	}
	other := m.ids[m.rnd.IntN(len(m.ids))]
	time.AfterFunc(time.Duration(m.rnd.IntN(200))*time.Millisecond, func() {
		if progress != "" {
			m.p.says(progress)
		}
		m.p.says(reply)
		switch len(reply) % 5 { // random enough, and the generator is the reader's
		case 0:
			m.p.says(reply)
		case 1:
			m.p.says(`{"jsonrpc":"2.0","id":` + other + `,"method":"sampling/createMessage","params":{"secret":1}}`)
			m.p.says(`{"jsonrpc":"2.0","method":"notifications/message","params":{"secret":1}}`)
		case 2:
			m.p.says(`{"jsonrpc":"2.0","id":"AAAAAAAAAAAAAAAAAAAAAA.1|n:1","result":{"secret":1}}`)
			m.p.says(`{"jsonrpc":"2.0","id":1,"result":{"secret":1}}`)
		case 3:
			m.p.says(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"secret":1}}`)
			m.p.says(progress)
		}
	})
}

// modelSession is one client: its calls and what they must get.
type modelSession struct {
	t     *testing.T
	w     *world
	name  string
	c     *client
	rnd   *rand.Rand
	sinks []*modelSink
}

type modelSink struct {
	*checkingSink
	id, token, secret string
	call              upstream.Call
	mayFail           bool // cancelled, or its id is one that was
}

func (s *modelSession) run(calls int) {
	s.c = s.w.open()
	if s.c.err != nil {
		s.t.Error(s.c.err)
		return
	}
	s.c.events.note = func(_, what string, b []byte) {
		if what != "error" && string(b) != listChanged {
			s.t.Errorf("%s got %s %s on its own stream", s.name, what, b)
		}
	}
	cancelled := make(map[string]bool)
	for i := range calls {
		sink := s.start(i)
		switch s.rnd.IntN(12) {
		case 0:
			sink.mayFail = true
			sink.call.Cancel(upstream.ErrCancelled)
		case 1:
			cancelled[sink.id] = true
			_ = s.c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + sink.id + `}}`)
		}
		time.Sleep(time.Duration(s.rnd.IntN(50)) * time.Millisecond)
	}
	for _, k := range s.sinks {
		k.mayFail = k.mayFail || cancelled[k.id]
	}
	if s.rnd.IntN(3) == 0 { // others wait for all their answers
		for _, k := range s.sinks {
			k.mayFail = true
		}
	} else {
		time.Sleep(time.Minute)
	}
	s.c.conn.End(upstream.ErrClosed)
}

// start sends one call whose params and token say whose it is.
func (s *modelSession) start(i int) *modelSink {
	k := &modelSink{id: modelIDs[s.rnd.IntN(len(modelIDs))], secret: fmt.Sprintf("%s-%d", s.name, i)}
	k.token = []string{`1`, fmt.Sprintf("%q", k.secret)}[s.rnd.IntN(2)]
	k.checkingSink = newCallSink(s.t, fmt.Sprintf("%s call %d (id %s)", s.name, i, k.id), s.c.hub)
	k.note = func(_, what string, b []byte) {
		progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + k.token + `,"message":"` + k.secret + `","progress":1}}`
		if what == "own" && string(b) != progress || what == "loose" && string(b) != listChanged {
			s.t.Errorf("%s got %s %s", k.name, what, b)
		}
	}
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"m","params":{"name":%q,"_meta":{"progressToken":%s}}}`, k.id, k.secret, k.token)
	call, err := s.c.conn.Start(request(line), k)
	if err != nil {
		s.t.Error(err)
	}
	k.call = call
	s.sinks = append(s.sinks, k)
	return k
}

func (s *modelSession) check() {
	replied := 0
	for _, k := range s.sinks {
		ends, reply, err := k.state()
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"name":%q,"_meta":{"progressToken":`, k.id, k.secret)
		switch {
		case ends != 1:
			s.t.Errorf("%s: %d ends", k.name, ends)
		case err != nil && !k.mayFail:
			s.t.Errorf("%s: %v", k.name, err)
		case err == nil && !strings.HasPrefix(reply, want):
			s.t.Errorf("%s got %s, want %s", k.name, reply, want)
		case err == nil:
			replied++
		}
	}
	if replied == 0 {
		s.t.Errorf("%s: no call was answered", s.name)
	}
}

// Every call ends exactly once, with its own id and payload; nothing foreign is
// delivered anywhere; and at the end all tables are empty.
func TestModelOfManySessions(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			inBubble(t, true, func(t *testing.T, w *world) { runModel(t, w, seed, 20, 200) })
		})
	}
}

func runModel(t *testing.T, w *world, seed uint64, sessions, calls int) {
	w.starts(func(p *fakeProcess) error {
		m := &modelServer{p: p, rnd: rand.New(rand.NewPCG(seed, 0))}
		p.react = m.react
		return nil
	})
	all := make([]*modelSession, sessions)
	var wg sync.WaitGroup
	for i := range all {
		s := &modelSession{t: t, w: w, name: fmt.Sprintf("s%d", i), rnd: rand.New(rand.NewPCG(seed, uint64(i)+1))}
		all[i] = s
		wg.Go(func() { s.run(calls) })
	}
	wg.Wait()
	time.Sleep(time.Minute)
	synctest.Wait()
	for _, s := range all {
		s.check()
	}
	if w.spawned() != 1 {
		t.Errorf("%d processes", w.spawned())
	}
	w.checkEmpty()
}
