package dialog

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// question is the id of what was asked on the stream of the nth call, last.
func (x *rig) question(n int) string {
	x.t.Helper()
	x.mu.Lock()
	s := x.sinks[len(x.sinks)-1-n]
	x.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.got) - 1; i >= 0; i-- {
		req := request(x.t, s.got[i])
		if id := req.Msg.Bytes(req.Msg.ID); id != nil && req.Method != 0 {
			return string(id)
		}
	}
	x.t.Fatalf("%s was asked nothing: %q", s.name, s.got)
	return ""
}

// A server that cannot be asked: the error is that of Open or Start, and no sink
// is used.
func TestAskIsRefused(t *testing.T) {
	x := newRig(t, nil)
	x.asker.err = upstream.ErrBusy
	reply := x.open(`{"jsonrpc":"2.0","id":0,"method":"initialize"}`)
	x.want("open refused: the server's queue is full")
	if reply.count()+x.events.count() != 0 || len(x.srv.conns) != 0 {
		t.Error("a sink was used, or the session is there")
	}
	x.sinks = nil
	defer x.finish()
	x.begin("2025-11-25", `{"roots":{}}`, `{"tools":{}}`)
	x.asker.err = upstream.ErrBusy
	x.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
	x.want("call 1 refused -32000 busy: the server's queue is full; try again later")

	x.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`)
	x.asker.last().result(`{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}`)
	id := x.question(0)
	x.told()
	x.asker.err = upstream.ErrBusy
	x.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"roots":[]}}`)
	x.want("call 2 end -32000 busy: the server's queue is full; try again later")
}

// A server may answer before Ask has returned.
func TestAnswersWithinAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t, nil)
		defer x.finish()
		x.asker.within = func(k *asked) {
			switch k.n {
			case 1:
				k.result(discovery(`{"tools":{"listChanged":true}}`))
			case 3:
				k.result(`{"resultType":"input_required","requestState":"s"}`)
			case 5:
				k.ends(errors.New("gone"))
			case 6:
				k.result(`{"resultType":"input_required","inputRequests":{"f":{"method":"elicitation/create"}}}`)
			default:
				k.result(`{"resultType":"complete"}`)
			}
		}
		x.open(`{"jsonrpc":"2.0","id":0,"method":"initialize"}`)
		x.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		x.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
		synctest.Wait()
		x.told()
		time.Sleep(pace)
		synctest.Wait()
		x.want("server 4 ...", `call 2 reply {"jsonrpc":"2.0","id":2,"result":{}}`)
		x.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call"}`)
		x.want("server 5 ...", "call 3 end -32603 internal: ...")
		x.send(`{"jsonrpc":"2.0","id":4,"method":"tools/call"}`)
		x.want("server 6 ...", `call 4 reply {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"the server \"srv\" asks for elicitation/create, and the client has not declared...`)
	})
}

// A call that is cancelled while it is being sent is cancelled at the server as
// soon as that is known.
func TestCancelWithinAsk(t *testing.T) {
	x := newRig(t, nil)
	defer x.finish()
	x.begin("2025-11-25", `{}`, `{"tools":{}}`)
	x.asker.within = func(k *asked) {
		x.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	}
	x.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	x.want("server 2 ...", "call 1 end -32000 cancelled: the request was cancelled", "server 2 cancelled: the request was cancelled")
	x.asker.within = func(k *asked) { x.conn.End(upstream.ErrShutdown) }
	x.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
	x.want("server 3 ...", "call 2 end -32000 shutdown: signalbox is shutting down", "events end -32000 ...", "server 3 cancelled: signalbox is shutting down")
}

// The server may ask for input so many times in one call.
func TestRoundsAreBounded(t *testing.T) {
	x := newRig(t, func(cfg *Config) { cfg.MaxRounds = 3 })
	defer x.finish()
	x.begin("2025-11-25", `{"roots":{}}`, `{"tools":{}}`)
	x.send(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}`)
	for range 3 {
		x.asker.last().result(`{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}`)
		x.send(`{"jsonrpc":"2.0","id":` + x.question(0) + `,"result":{"roots":[]}}`)
	}
	x.told()
	x.asker.last().result(`{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}`)
	x.want(`call 1 end -32603 rounds: the server "srv" asked for input more than 3 times in one call`)
}

// One result may ask for so much.
func TestQuestionsAreBounded(t *testing.T) {
	x := newRig(t, nil)
	defer x.finish()
	x.begin("2025-11-25", `{"roots":{}}`, `{"tools":{}}`)
	for _, n := range []int{maxQuestions, maxQuestions + 1} {
		x.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
		x.told()
		var all []string
		for i := range n {
			all = append(all, `"q`+strconv.Itoa(i)+`":{"method":"roots/list"}`)
		}
		x.asker.last().result(`{"resultType":"input_required","inputRequests":{` + strings.Join(all, ",") + `}}`)
		if got := x.told(); n == maxQuestions && len(got) != n || n > maxQuestions && len(got) != 1 {
			t.Errorf("%d questions: %q", n, got)
		}
	}
}

// What a session can watch is bounded.
func TestWatchingIsBounded(t *testing.T) {
	x := newRig(t, nil)
	defer x.finish()
	x.begin("2025-11-25", `{}`, `{"resources":{"subscribe":true}}`)
	for i := range maxWatched {
		x.send(`{"jsonrpc":"2.0","id":` + strconv.Itoa(i) + `,"method":"resources/subscribe","params":{"uri":"x:` + strconv.Itoa(i) + `"}}`)
	}
	x.told()
	x.send(`{"jsonrpc":"2.0","id":"more","method":"resources/subscribe","params":{"uri":"x:more"}}`)
	x.want(`call "more" refused -32000 subscription_limit: this session watches as many resources as one session may (1024)`)
	x.send(`{"jsonrpc":"2.0","id":"long","method":"resources/subscribe","params":{"uri":"` + strings.Repeat("x", maxURI+1) + `"}}`)
	x.want(`call "long" refused -32602 uri: params.uri is missing, no string, or longer than 8192 bytes`)
}

// A closed server ends its sessions, and opens none.
func TestClose(t *testing.T) {
	x := newRig(t, nil)
	x.begin("2025-11-25", `{"roots":{}}`, `{"tools":{"listChanged":true}}`)
	x.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	x.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
	x.told()
	x.srv.Close()
	x.want("server 3 cancelled: signalbox is shutting down", "call 1 end -32000 shutdown: signalbox is shutting down",
		"server 2 cancelled: signalbox is shutting down", "events end -32000 shutdown: signalbox is shutting down")
	x.finish()
	if _, err := x.srv.Open(request(t, `{"jsonrpc":"2.0","id":0,"method":"initialize"}`), x.newSink("late"), x.events); !errors.Is(err, upstream.ErrShutdown) {
		t.Errorf("Open of a closed server: %v", err)
	}
}
