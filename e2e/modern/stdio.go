package modern

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"sync"
)

// ServeStdio serves one client until the end of in. It fails where the client breaks the
// rules of the transport, so that a test sees that it did.
func (s *Server) ServeStdio(in io.Reader, out io.Writer) error {
	p := &pipe{s: s, out: out, running: make(map[string]context.CancelFunc)}
	ctx, cancel := context.WithCancel(context.Background())
	defer p.calls.Wait()
	defer cancel()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		m, err := parse(line)
		if err != nil {
			return fmt.Errorf("%w, in %.200q", err, line)
		}
		p.take(ctx, m)
	}
}

// pipe is the one client of a process.
type pipe struct {
	s     *Server
	calls sync.WaitGroup

	mu      sync.Mutex
	out     io.Writer                     // guarded by mu
	running map[string]context.CancelFunc // id as JSON → its call
}

func (p *pipe) take(ctx context.Context, m message) {
	switch {
	case m.ID == nil:
		if m.Method == "notifications/cancelled" {
			p.cancelled(m.Params)
		}
	case m.Method == "initialize" && !hasMeta(m.Params):
		p.send(response{JSONRPC: "2.0", ID: m.ID, Error: p.s.refusal(m.Params)})
	default:
		ctx, cancel := context.WithCancel(ctx)
		id := string(m.ID)
		p.mu.Lock()
		p.running[id] = cancel
		p.mu.Unlock()
		p.calls.Go(func() {
			defer cancel()
			p.s.run(ctx, m, p.send)
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.running, id)
		})
	}
}

func (p *pipe) cancelled(raw json.RawMessage) {
	var params struct{ RequestID json.RawMessage }
	if err := json.Unmarshal(raw, &params); err != nil {
		log.Printf("cancel: %v", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.running[string(params.RequestID)]; cancel != nil {
		cancel()
	}
}

func (p *pipe) send(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // results are made of maps, strings and what was JSON before
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.out.Write(append(b, '\n')); err != nil {
		log.Print(err)
	}
}

// hasMeta tells a request of this revision, even of a method that it does not have.
func hasMeta(params json.RawMessage) bool {
	var p Params
	return json.Unmarshal(params, &p) == nil && p.Meta.Version != nil
}

// refusal answers a handshake.
func (s *Server) refusal(raw json.RawMessage) *Error {
	var params struct{ ProtocolVersion string }
	if err := json.Unmarshal(raw, &params); err != nil {
		return &Error{Code: -32602, Message: err.Error()}
	}
	if s.Refusal != 0 {
		return unsupported(params.ProtocolVersion, s.Refusal)
	}
	return unsupported(params.ProtocolVersion, -32022)
}
