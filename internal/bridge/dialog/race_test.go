package dialog

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// crowd is many goroutines on one session: clients that call, answer, cancel and
// watch, and a server that answers, asks, fails and tells of changes.
type crowd struct{ *rig }

func (x *crowd) server(k *asked) {
	go func() {
		if k.req.Method.String() == "subscriptions/listen" {
			x.listen(k)
			return
		}
		for range rand.IntN(3) {
			k.says(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
		}
		switch rand.IntN(8) {
		case 0, 1:
			k.result(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{}}},"requestState":"s"}`)
		case 2:
			k.ends(upstream.ErrTimeout)
		case 3:
			k.says(`{"jsonrpc":"2.0","id":` + k.id() + `,"error":{"code":-32020,"message":"m"}}`)
		case 4:
			k.result(`{"resultType":"input_required","requestState":"s"}`)
		case 5: // no answer at all
		default:
			k.result(`{"resultType":"complete","content":[]}`)
		}
	}()
}

func (x *crowd) listen(k *asked) {
	k.says(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["x:0","x:1"]}}}`)
	for range rand.IntN(4) {
		k.says(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:1"}}`)
	}
	if rand.IntN(4) == 0 {
		k.ends(upstream.ErrLost)
	}
}

// client answers what it is asked.
func (x *crowd) client(data string) {
	req := request(x.t, data)
	id := req.Msg.Bytes(req.Msg.ID)
	if id == nil || req.Msg.Kind != wire.Request {
		return
	}
	go func() {
		switch rand.IntN(6) {
		case 0:
			x.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"no"}}`, id))
		case 1: // never
		default:
			x.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id))
		}
	}()
}

func (x *crowd) act(n int) {
	for i := range 20 {
		id := n*100 + i
		switch rand.IntN(9) {
		case 8:
			time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond) // of the test's own clock
		case 0:
			x.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"x:%d"}}`, id, rand.IntN(3)))
		case 1:
			x.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/unsubscribe","params":{"uri":"x:%d"}}`, id, rand.IntN(3)))
		case 2:
			x.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, n*100+rand.IntN(20)))
		case 3:
			x.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"logging/setLevel","params":{"level":"debug"}}`, id))
		case 4:
			x.mu.Lock()
			call := x.calls[fmt.Sprint(n*100+rand.IntN(20))]
			x.mu.Unlock()
			if call != nil {
				call.Cancel(upstream.ErrTimeout)
			}
		default:
			x.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t"}}`, id))
		}
	}
}

// Whatever happens at once, every call ends once, and nothing is left of the
// session (see rig.finish and sink).
func TestEverythingAtOnce(t *testing.T) {
	for range 10 {
		synctest.Test(t, everythingAtOnce)
	}
}

func everythingAtOnce(t *testing.T) {
	x := &crowd{newRig(t, func(cfg *Config) {
		cfg.Question, cfg.CallLimit = time.Second, 3*time.Second
		cfg.Refresh = func(_ upstream.Request, done func(error)) { done(nil) }
	})}
	x.begin("2025-11-25", `{"roots":{},"elicitation":{}}`, `{"tools":{"listChanged":true},"resources":{"subscribe":true}}`)
	x.asker.within = x.server
	x.heard = x.client
	x.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	var acting sync.WaitGroup
	for n := range 6 {
		acting.Go(func() { x.act(n) })
	}
	if rand.IntN(2) == 0 {
		acting.Wait()
	}
	x.conn.End(upstream.ErrClosed)
	acting.Wait()
	synctest.Wait()
	x.finish()
}
