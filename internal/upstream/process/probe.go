package process

import (
	"bytes"
	"context"
	"sync"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Probe starts a process that serves nobody, writes one request to it, and stops
// it after the answer: a process that was asked something of one era may be of no
// use to the other. The reply is nil where the process ended, or ctx, without one.
// An error: it could not be started.
func (s *Server) Probe(ctx context.Context, request []byte) (reply []byte, err error) {
	msg, err := wire.Parse(request)
	if err != nil {
		return nil, err
	}
	p := &probe{id: bytes.Clone(msg.Bytes(msg.ID)), done: make(chan struct{})}
	pipe, err := s.cfg.Start(p, upstream.Request{})
	if err != nil {
		return nil, err
	}
	defer pipe.Stop()
	line := bytes.Clone(request)
	if _, err := pipe.Write(line); err != nil {
		return nil, nil // it is gone already
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.finish(nil)
	}
	return p.reply, nil
}

// probe is the child.Handler of a process that serves nobody.
type probe struct {
	id    []byte
	once  sync.Once
	done  chan struct{} // closed when reply is set
	reply []byte
}

func (p *probe) finish(reply []byte) {
	p.once.Do(func() {
		p.reply = reply
		close(p.done)
	})
}

// Line takes the response to the request, or an error that names none: some
// servers cannot say whom they refuse.
func (p *probe) Line(line []byte) {
	msg, err := wire.Parse(line)
	if err != nil || msg.Kind != wire.Response {
		return
	}
	if id := msg.Bytes(msg.ID); bytes.Equal(id, p.id) || id == nil && msg.Error.Present() {
		p.finish(bytes.Clone(line))
	}
}

func (p *probe) Oversize(_, _ []byte, _ int64) {}

func (p *probe) Exit(child.ExitInfo) { p.finish(nil) }
