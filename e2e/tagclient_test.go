package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// tagClient calls the tool tag of sdkserver, each time with a tag that nobody else
// sends. Its fields are used by one goroutine at a time, but for those guarded by mu.
type tagClient struct {
	t      *testing.T
	n      int // number of the client
	base   string
	onLost string // what Signalbox does about a lost session

	client *rawclient.Client
	s      rawclient.Session
	stream <-chan struct{} // closed when the GET stream ends; nil: there is none
	made   int             // calls
	sent   map[string]bool // tag → was it answered
	first  string          // the server that answered first

	mu       sync.Mutex
	server   string   // that answered last
	answered int      // calls, by that server
	errors   []string // what the losses of its session looked like
}

// tagTimeout is for a call that takes a few milliseconds.
const tagTimeout = 30 * time.Second

// tagAnswer is what the tool answers.
type tagAnswer struct{ Tag, Server string }

// rpcError is a JSON-RPC error.
type rpcError struct {
	Message string
	Data    struct{ Source, Reason string }
}

func (e *rpcError) Error() string {
	return fmt.Sprintf("%s (%s of %s)", e.Message, e.Data.Reason, e.Data.Source)
}

// callTag calls the tool, which takes its time.
func callTag(ctx context.Context, s rawclient.Session, id, tag string, ms int) (tagAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, tagTimeout)
	defer cancel()
	m, err := s.Call(ctx, id, "tools/call", fmt.Sprintf(`{"name":"tag","arguments":{"tag":%q,"ms":%d}}`, tag, ms))
	if err != nil {
		return tagAnswer{}, err
	}
	if m.Error != nil {
		e := new(rpcError)
		return tagAnswer{}, errors.Join(json.Unmarshal(m.Error, e), e)
	}
	var result struct{ StructuredContent tagAnswer }
	if err := json.Unmarshal(m.Result, &result); err != nil {
		return tagAnswer{}, fmt.Errorf("%.300s: %w", m.Raw, err)
	}
	if result.StructuredContent.Tag != tag {
		return tagAnswer{}, fmt.Errorf("the call with tag %s was answered by %.300s", tag, m.Raw)
	}
	return result.StructuredContent, nil
}

// begin opens the first session and finds out who has it.
func (c *tagClient) begin(ctx context.Context) {
	c.client, c.sent = rawclient.New(c.base), make(map[string]bool)
	if err := c.open(ctx); err != nil {
		c.t.Errorf("client %d: open: %v", c.n, err)
		return
	}
	if err := c.call(ctx); err != nil {
		c.t.Errorf("client %d: first call: %v", c.n, err)
	}
	c.first = c.server
}

// open opens a session. Half of those over Streamable HTTP listen as well.
func (c *tagClient) open(ctx context.Context) error {
	var err error
	if c.n%2 == 1 {
		c.s, err = c.client.Legacy(ctx, rawclient.Options{})
		return err
	}
	s, err := c.client.Streamable(ctx, rawclient.Options{})
	if c.s = s; err != nil || c.n%4 != 0 {
		return err
	}
	stream, err := s.Listen(ctx, "")
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	c.stream = ended
	go func() {
		defer close(ended)
		for {
			if _, err := stream.Next(); err != nil {
				return
			}
		}
	}()
	return nil
}

// run calls until it is told to stop, or meets what it must not meet.
func (c *tagClient) run(ctx context.Context, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		err := c.call(ctx)
		if err != nil {
			err = c.lost(ctx, err)
		}
		if err != nil {
			c.t.Errorf("client %d, which was at %s and is at %s: %v", c.n, c.first, c.server, err)
			return
		}
	}
}

func (c *tagClient) call(ctx context.Context) error {
	c.made++
	tag := fmt.Sprintf("%d.%d", c.n, c.made)
	c.sent[tag] = false
	answer, err := callTag(ctx, c.s, strconv.Itoa(c.made), tag, 50+rand.IntN(100))
	if err != nil {
		return err
	}
	c.sent[tag] = true
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != answer.Server {
		c.server, c.answered = answer.Server, 0
	}
	c.answered++
	return nil
}

// lost takes the error of a call for what a client sees when its server is killed, or
// returns it. The session begins anew where Signalbox leaves that to the client.
func (c *tagClient) lost(ctx context.Context, err error) error {
	kind := kindOfLoss(err)
	allowed := []string{"outcome_unknown", "stream_ended"}
	if c.onLost == "end" {
		allowed = append(allowed, "HTTP 404", "session_lost")
	}
	if !slices.Contains(allowed, kind) {
		return err
	}
	c.mu.Lock()
	c.errors = append(c.errors, kind)
	c.mu.Unlock()
	if c.onLost == "reinitialize" {
		return nil
	}
	if err := c.isOver(ctx); err != nil {
		return err
	}
	return c.open(ctx)
}

// kindOfLoss is empty for an error that is none of Signalbox.
func kindOfLoss(err error) string {
	var status *rawclient.StatusError
	var rpc *rpcError
	switch {
	case errors.As(err, &status) && status.Status == http.StatusNotFound:
		return "HTTP 404"
	case errors.As(err, &rpc) && rpc.Data.Source == "signalbox":
		return rpc.Data.Reason
	}
	return ""
}

// isOver makes sure that the old session leads nowhere and that its streams have ended.
func (c *tagClient) isOver(ctx context.Context) error {
	answer, err := callTag(ctx, c.s, `"after"`, "after the loss", 0)
	kind := kindOfLoss(err)
	if _, legacy := c.s.(*rawclient.Legacy); legacy && errors.Is(err, rawclient.ErrNoResponse) {
		kind = "HTTP 404" // the stream was the session, and has ended
	}
	if kind != "HTTP 404" && kind != "session_lost" {
		return fmt.Errorf("a call in the lost session: %v, %w", answer, err)
	}
	if c.stream == nil {
		return nil
	}
	select {
	case <-c.stream:
		c.stream = nil
		return nil
	case <-time.After(tagTimeout):
		return errors.New("the stream of the lost session does not end")
	}
}

// end ends the session, whose stream must be open still.
func (c *tagClient) end(ctx context.Context) {
	select {
	case <-c.stream:
		c.t.Errorf("client %d: the stream of a living session has ended", c.n)
	default:
	}
	if err := c.s.Close(ctx); err != nil {
		c.t.Errorf("client %d: close: %v", c.n, err)
	}
	c.client.Close()
}

// state is what others may ask while the client runs.
func (c *tagClient) state() (server string, answered, losses int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server, c.answered, len(c.errors)
}
