package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

type stressCounts struct {
	Answered, Cancelled int // calls
	Progress            int // notifications
	Vanished            int // clients
}

func (c *stressCounts) add(o stressCounts) {
	c.Answered += o.Answered
	c.Cancelled += o.Cancelled
	c.Progress += o.Progress
	c.Vanished += o.Vanished
}

// stressClient is one client. Its fields are used by one goroutine, but for those
// guarded by mu.
type stressClient struct {
	t      *testing.T
	n      int // number of the client
	base   string
	random *rand.Rand
	client *rawclient.Client
	s      rawclient.Session

	mu       sync.Mutex
	counts   stressCounts
	progress map[string]chan struct{} // token → one item for each notification
}

func (c *stressClient) run(ctx context.Context) {
	if err := c.open(ctx); err != nil {
		c.t.Errorf("client %d: open: %v", c.n, err)
		return
	}
	if c.n%vanishingIn < 2 { // the transports alternate
		c.calls(ctx, stressCalls/2)
		if err := c.vanish(ctx); err != nil {
			c.t.Errorf("client %d: vanish: %v", c.n, err)
			return
		}
		c.calls(ctx, stressCalls/2)
	} else {
		c.calls(ctx, stressCalls)
	}
	if err := c.s.Close(ctx); err != nil {
		c.t.Errorf("client %d: close: %v", c.n, err)
	}
	c.client.Close()
}

func (c *stressClient) open(ctx context.Context) error {
	c.client = rawclient.New(c.base)
	c.mu.Lock()
	c.progress = make(map[string]chan struct{})
	c.mu.Unlock()
	var err error
	options := rawclient.Options{OnMessage: c.onMessage}
	if c.n%2 == 0 {
		c.s, err = c.client.Streamable(ctx, options)
	} else {
		c.s, err = c.client.Legacy(ctx, options)
	}
	return err
}

// onMessage takes all that is no answer to a call: it has to be progress of a call of
// this client that is under way.
func (c *stressClient) onMessage(m rawclient.Message) {
	var params struct {
		ProgressToken json.RawMessage
		Message       string
	}
	if m.Method != "notifications/progress" || json.Unmarshal(m.Params, &params) != nil {
		c.t.Errorf("client %d got what it did not ask for: %.300s", c.n, m.Raw)
		return
	}
	token := string(params.ProgressToken)
	var of struct{ Client, Call int }
	if err := json.Unmarshal([]byte(params.Message), &of); err != nil || of.Client != c.n || strconv.Itoa(of.Call) != token {
		c.t.Errorf("client %d got another's progress, under token %s: %.300s", c.n, token, m.Raw)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Progress++
	seen := c.progress[token]
	if seen == nil {
		c.t.Errorf("client %d got progress of a call that is over: %.300s", c.n, m.Raw)
		return
	}
	seen <- struct{}{} // has room for all that a call may send
}

// calls makes n calls with the ids 1 to n.
func (c *stressClient) calls(ctx context.Context, n int) {
	type job struct {
		id   int
		seed uint64
	}
	jobs := make(chan job)
	var workers sync.WaitGroup
	for range stressWorkers {
		workers.Go(func() {
			for j := range jobs {
				if err := c.call(ctx, j.id, rand.New(rand.NewPCG(j.seed, 0))); err != nil {
					c.t.Errorf("client %d, call %d: %v", c.n, j.id, err)
				}
			}
		})
	}
	for id := range n {
		jobs <- job{id + 1, c.random.Uint64()}
	}
	close(jobs)
	workers.Wait()
}

// call makes one call of a random kind and checks everything that comes back.
func (c *stressClient) call(ctx context.Context, id int, random *rand.Rand) error {
	switch random.IntN(8) {
	case 0:
		return c.hash(ctx, id, random)
	case 1:
		return c.cancelled(ctx, id)
	case 2, 3:
		return c.echoing(ctx, id, "delay", fmt.Sprintf(`"ms":%d`, random.IntN(30)), 0)
	case 4, 5:
		n := 1 + random.IntN(3)
		return c.echoing(ctx, id, "progress", fmt.Sprintf(`"n":%d,"ms":%d`, n, random.IntN(5)), n)
	default:
		return c.echoing(ctx, id, "echo", `"n64": 9007199254740993, "s":"\u00e9\/\u2028"`, 0)
	}
}

// echoing calls a tool that answers its arguments, which nobody else sends.
func (c *stressClient) echoing(ctx context.Context, id int, tool, more string, progress int) error {
	arguments := c.arguments(id, more)
	seen := c.expectProgress(id, progress)
	defer c.forgetProgress(id)
	m, err := c.s.Call(ctx, strconv.Itoa(id), "tools/call", callParams(tool, arguments, id))
	if err != nil {
		return err
	}
	var result struct{ StructuredContent json.RawMessage }
	if err := json.Unmarshal(m.Result, &result); err != nil {
		return fmt.Errorf("answered with %.300s: %w", m.Raw, err)
	}
	if string(result.StructuredContent) != arguments {
		return fmt.Errorf("answered with %.300s, want %s", m.Raw, arguments)
	}
	if len(seen) != progress {
		return fmt.Errorf("%d notifications of progress before the answer, want %d", len(seen), progress)
	}
	c.count(func(n *stressCounts) { n.Answered++ })
	return nil
}

// hash has the server hash the params that it got: they are those that were sent.
func (c *stressClient) hash(ctx context.Context, id int, random *rand.Rand) error {
	params := fmt.Sprintf(`{ "arguments" : {"client":%d,"x":-0.0e+1,"r":%d} ,"name":"hash", "u":"\ud83d\udea6\ud800" }`, c.n, random.Uint64())
	m, err := c.s.Call(ctx, strconv.Itoa(id), "tools/call", params)
	if err != nil {
		return err
	}
	var result struct{ StructuredContent struct{ SHA256 string } }
	if err := json.Unmarshal(m.Result, &result); err != nil {
		return fmt.Errorf("answered with %.300s: %w", m.Raw, err)
	}
	if sum := sha256.Sum256([]byte(params)); result.StructuredContent.SHA256 != hex.EncodeToString(sum[:]) {
		return fmt.Errorf("the server got other params than %s: %s", params, m.Result)
	}
	c.count(func(n *stressCounts) { n.Answered++ })
	return nil
}

// cancelled starts a call that never ends, sees that it runs, and cancels it. There
// must be no answer; over HTTP+SSE, where nothing tells the end of a call, onMessage
// would see it.
func (c *stressClient) cancelled(ctx context.Context, id int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := c.expectProgress(id, 1)
	ended := make(chan error, 1)
	go func() {
		m, err := c.s.Call(ctx, strconv.Itoa(id), "tools/call", callParams("hold", c.arguments(id, `"key":"never"`), id))
		if err == nil {
			err = fmt.Errorf("a cancelled call was answered: %.300s", m.Raw)
		}
		ended <- err
	}()
	select {
	case <-seen:
	case err := <-ended:
		return fmt.Errorf("before it could be cancelled: %w", err)
	}
	c.forgetProgress(id)
	if err := c.s.Notify(ctx, "notifications/cancelled", fmt.Sprintf(`{"requestId":%d,"reason":"stress"}`, id)); err != nil {
		return err
	}
	want := rawclient.ErrNoResponse
	if _, legacy := c.s.(*rawclient.Legacy); legacy {
		cancel()
		want = context.Canceled
	}
	if err := <-ended; !errors.Is(err, want) {
		return fmt.Errorf("ended by %w, want %w", err, want)
	}
	c.count(func(n *stressCounts) { n.Cancelled++ })
	return nil
}

// vanish resets the client's connections while calls are in flight, opens a session
// anew, and only then has the server answer those calls: to nobody, above all not to
// the new session, whose calls have the same ids.
func (c *stressClient) vanish(ctx context.Context) error {
	ended := make(chan error, stressWorkers)
	for id := 1; id <= stressWorkers; id++ {
		seen := c.expectProgress(id, 1)
		go func() {
			params := callParams("hold", c.arguments(id, fmt.Sprintf(`"key":"client %d"`, c.n)), id)
			m, err := c.s.Call(ctx, strconv.Itoa(id), "tools/call", params)
			if err == nil {
				c.t.Errorf("client %d: a call that was not released was answered: %.300s", c.n, m.Raw)
			}
			ended <- err
		}()
		select {
		case <-seen:
		case err := <-ended:
			return fmt.Errorf("call %d ended before: %w", id, err)
		}
	}
	c.client.Reset()
	for range stressWorkers {
		<-ended
	}
	c.count(func(n *stressCounts) { n.Vanished++ })
	if err := c.open(ctx); err != nil {
		return err
	}
	release := fmt.Sprintf(`{"name":"release","arguments":{"key":"client %d"}}`, c.n)
	m, err := c.s.Call(ctx, `"release"`, "tools/call", release)
	if err == nil && m.Result == nil {
		err = fmt.Errorf("release: %s", m.Error)
	}
	return err
}

// arguments name the client and the call, beside more members.
func (c *stressClient) arguments(id int, more string) string {
	return fmt.Sprintf(`{"client":%d,"call":%d,%s}`, c.n, id, more)
}

// callParams are the params of a call with its id as progress token.
func callParams(tool, arguments string, id int) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"progressToken":%d}}`, tool, arguments, id)
}

func (c *stressClient) expectProgress(id, room int) <-chan struct{} {
	seen := make(chan struct{}, room+8)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress[strconv.Itoa(id)] = seen
	return seen
}

func (c *stressClient) forgetProgress(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.progress, strconv.Itoa(id))
}

func (c *stressClient) count(add func(*stressCounts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.counts)
}
