package bridge

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/signalbox-mcp/signalbox/internal/bridge/header"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// schemas is what is known of the tools of a server, by who sees them.
type schemas struct {
	cache  header.Cache
	flight singleflight.Group

	mu     sync.Mutex
	looked map[string]time.Time // when the list of a scope was last read
}

// lookAgain is how soon the list is read again for a tool that was not in it.
const lookAgain = time.Minute

// maxLooked bounds the scopes of which it is known that they were looked at.
const maxLooked = 1024

// of is the schema of a tool; false: the list of tools has to be read.
func (c *schemas) of(scope, tool string) (header.Schema, bool) {
	if s, ok := c.cache.Get(scope, tool); ok {
		return s, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.looked[scope]
	return header.Schema{}, ok && time.Since(at) < lookAgain
}

// stale tells whether the list of a scope was not read just now.
func (c *schemas) stale(scope string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.looked[scope]) > staleAfter
}

const staleAfter = time.Second

func (c *schemas) learned(scope string, lists [][]byte) {
	for _, list := range lists {
		c.cache.Learn(scope, list)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looked == nil || len(c.looked) >= maxLooked {
		c.looked = make(map[string]time.Time)
	}
	c.looked[scope] = time.Now()
}

// listWait bounds what a call waits for the schema of its tool.
const listWait = 10 * time.Second

// checkParams compares the Mcp-Param-* headers of a call with its arguments, as
// the schema of its tool wants it (2026-07-28, streamable-http, "Server Behavior
// for Custom Headers").
func (s *Server) checkParams(req *upstream.Request, own bool) error {
	if req.Method != mcp.ToolsCall {
		return nil
	}
	name, ok := wire.Unquote(req.Msg.Bytes(req.Msg.P.Name))
	if !ok {
		return nil // the server will refuse it
	}
	scope := ""
	if req.Principal != nil {
		scope = req.Principal.Key()
	}
	check := func() error {
		schema, _ := s.schemas.of(scope, string(name))
		return schema.Check(req.Header, req.Msg.Bytes(req.Msg.P.Arguments))
	}
	_, known := s.schemas.of(scope, string(name))
	if known {
		if err := check(); err == nil || !s.schemas.stale(scope) {
			return err
		}
	}
	// Not known, or the tool may have changed.
	_, _, _ = s.schemas.flight.Do(scope, func() (any, error) { s.learn(req, scope, own); return nil, nil })
	return check()
}

// maxListPages bounds the pages of a list of tools that are looked at.
const maxListPages = 16

// learn reads the list of tools as the sender of req sees it. Without it nothing
// is known of any tool, and no header wrong.
func (s *Server) learn(req *upstream.Request, scope string, own bool) {
	to := s.cfg.Parked
	if own {
		to = s.cfg.PerRequest
	}
	until := time.Now().Add(listWait)
	cursor := []byte(nil)
	var lists [][]byte
	for range maxListPages {
		list, err := s.list(to, req, cursor, until)
		if err != nil {
			s.cfg.Log.Warn("the list of tools could not be read, so Mcp-Param headers are not checked", "err", err)
			if !errors.Is(err, errNoList) {
				return // the next call asks again
			}
			break
		}
		lists = append(lists, list)
		next, ok := wire.Lookup(list, "nextCursor")
		if !ok || list[next.Start] != '"' {
			break
		}
		cursor = bytes.Clone(next.Of(list))
	}
	s.schemas.learned(scope, lists)
}

// errNoList: the server has no list, or is slow.
var errNoList = errors.New("the server gave none")

// list asks for one page of the tools; the result is that of tools/list. Any other
// error than errNoList is none of the server's.
func (s *Server) list(to upstream.Asker, like *upstream.Request, cursor []byte, until time.Time) ([]byte, error) {
	m := &like.Msg
	raw := []byte(`{"jsonrpc":"2.0","id":"signalbox-tools","method":"tools/list","params":{"_meta":{"` + mcp.MetaVersion + `":"` + string(mcp.R20260728) +
		`","` + mcp.MetaClientCapabilities + `":`)
	raw = append(append(raw, m.Bytes(m.P.MetaClientCaps)...), '}')
	if cursor != nil {
		raw = append(append(raw, `,"cursor":`...), cursor...)
	}
	msg, err := wire.Parse(append(raw, "}}"...))
	if err != nil {
		return nil, err
	}
	ask := upstream.NewRequest(msg)
	ask.Principal, ask.Header = like.Principal, like.Header
	one := newOne()
	call, err := to.Ask(ask, one)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-one.done:
	case <-s.ctx.Done():
		call.Cancel(upstream.ErrShutdown)
	case <-timer.C:
		call.Cancel(upstream.ErrTimeout)
	}
	<-one.done
	result, ok := wire.Lookup(one.reply, "result")
	switch {
	case ok:
		return result.Of(one.reply), nil
	case one.err != nil && !errors.Is(one.err, upstream.ErrTimeout):
		return nil, one.err
	}
	return nil, errNoList
}

// one is the sink of a call of which only the answer matters.
type one struct {
	done  chan struct{}
	reply []byte
	err   error
}

func newOne() *one { return &one{done: make(chan struct{})} }

func (o *one) Deliver(f upstream.Frame) upstream.Verdict {
	if f.Relation == upstream.Reply {
		o.reply = f.Data
	}
	return upstream.Taken
}

func (o *one) End(reason error) {
	o.err = reason
	close(o.done)
}
