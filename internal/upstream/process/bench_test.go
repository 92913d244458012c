package process

import (
	"bytes"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// nullSink takes everything and keeps nothing.
type nullSink struct{}

func (nullSink) Deliver(upstream.Frame) upstream.Verdict { return upstream.Taken }
func (nullSink) End(error)                               {}

// echoPipe answers, when told to, the last line that was written to it.
type echoPipe struct {
	handler child.Handler
	last    []byte
	ticket  child.Ticket
}

func (p *echoPipe) start(h child.Handler, _ upstream.Request) (Pipe, error) {
	p.handler = h
	return p, nil
}

func (p *echoPipe) Write(line []byte) (*child.Ticket, error) {
	p.last = line
	return &p.ticket, nil
}

func (p *echoPipe) answer() {
	msg, err := wire.Parse(p.last)
	if err != nil {
		panic(err)
	}
	p.handler.Line(wire.AppendResult(nil, msg.Bytes(msg.ID), []byte(initResult)))
}

func (p *echoPipe) Withdraw(*child.Ticket) bool { return false }
func (p *echoPipe) Stop()                       {}
func (p *echoPipe) Tail() string                { return "" }
func (p *echoPipe) Partial() string             { return "" }

// BenchmarkCall is one call of 200 bytes with a progress token through the
// table and back, parsing included.
func BenchmarkCall(b *testing.B) {
	for _, shared := range []bool{true, false} {
		b.Run(map[bool]string{true: "shared", false: "session"}[shared], func(b *testing.B) {
			pipe := &echoPipe{}
			w := newWorld(b, shared, func(c *Config) { c.Start = pipe.start })
			conn, err := w.Open(request(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`), nullSink{}, nullSink{})
			if err != nil {
				b.Fatal(err)
			}
			pipe.answer()
			_ = conn.Send(request(initializedLine))
			line := []byte(`{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` +
				strings.Repeat("x", 100) + `"},"_meta":{"progressToken":7}}}`)
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				msg, err := wire.Parse(bytes.Clone(line))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := conn.Start(upstream.NewRequest(msg), nullSink{}); err != nil {
					b.Fatal(err)
				}
				pipe.answer()
			}
			w.Close()
		})
	}
}
