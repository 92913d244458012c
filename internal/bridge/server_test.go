package bridge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

const listTools = `{"jsonrpc":"2.0","id":7,"method":"prompts/list","params":{` + meta + `}}`

func demandFrom(t *testing.T, b *box, from string) {
	t.Helper()
	if !strings.Contains(b.reply, `"from":"`+from+`"`) || b.ends != 1 {
		t.Errorf("got %q, %d ends (%v), want the answer of %s", b.reply, b.ends, b.err, from)
	}
}

// Which of the four ways a client is served, by its era, the server's, and what
// the configuration says of that.
func TestCells(t *testing.T) {
	for _, tt := range []struct {
		era        Era
		perRequest bool
		refuses    bool // a handshake
		asked      string
		opened     string
		probes     int
	}{
		{Auto, true, false, "own", "handshake", 1},
		{Auto, true, true, "own", "dialog", 1},
		{Auto, false, false, "parked", "handshake", 1},
		{Legacy, true, false, "parked", "handshake", 0},
		{Modern, false, false, "own", "dialog", 0},
	} {
		inBubble(t, tt.era, func(t *testing.T, r *rig) {
			r.finding.PerRequest = tt.perRequest
			if tt.refuses {
				r.handshake.reply = refusal
			}
			for range 2 {
				b, err := r.ask(t, listTools)
				if err != nil {
					t.Fatal(err)
				}
				demandFrom(t, b, tt.asked)
			}
			_, reply, _ := r.open(t)
			demandFrom(t, reply, tt.opened)
			if got, want := r.Eras(), map[string]string{"own handshake": "both", "own dialog": "per-request", "parked handshake": "handshake"}[tt.asked+" "+tt.opened]; got != want {
				t.Errorf("eras %q, want %q", got, want)
			}
			if probes := r.probes; tt.refuses && probes != 2 || !tt.refuses && probes != tt.probes {
				t.Errorf("%d probes", probes)
			}
		})
	}
}

func refusal(req upstream.Request) []byte {
	return wire.AppendError(nil, req.Msg.Bytes(req.Msg.ID), -32022, "Unsupported protocol version", []byte(`{"supported":["2026-07-28"]}`))
}

// A client of the handshake era costs no probe, at a server that knows a handshake.
func TestHandshakeFirst(t *testing.T) {
	inBubble(t, Auto, func(t *testing.T, r *rig) {
		for range 3 {
			conn, reply, events := r.open(t)
			demandFrom(t, reply, "handshake")
			b := &box{t: t}
			if _, err := conn.Start(request(t, `{"jsonrpc":"2.0","id":2,"method":"x"}`), b); err != nil {
				t.Error(err)
			}
			demandFrom(t, b, "handshake")
			conn.End(upstream.ErrClosed)
			if events.ends != 1 {
				t.Errorf("%d ends of the session", events.ends)
			}
		}
		if r.probes != 0 {
			t.Errorf("%d probes", r.probes)
		}
	})
}

// A refused handshake becomes a dialog, under the same session, and the next
// session begins with one.
func TestRefusedHandshakeBecomesADialog(t *testing.T) {
	for name, refuse := range map[string]func(*fake){
		"error": func(f *fake) { f.reply = refusal },
		"exit":  func(f *fake) { f.reply, f.end = nil, upstream.Errorf(-32603, "start_failed", "exited") },
		"HTTP":  func(f *fake) { f.reply, f.end = nil, upstream.Errorf(-32603, "http_status", "HTTP 400") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Auto, func(t *testing.T, r *rig) {
				r.finding.PerRequest = true
				refuse(&r.handshake)
				conn, reply, events := r.open(t)
				demandFrom(t, reply, "dialog")
				if events.ends != 0 {
					t.Error("the session has ended")
				}
				b := &box{t: t}
				if _, err := conn.Start(request(t, `{"jsonrpc":"2.0","id":2,"method":"x"}`), b); err != nil {
					t.Error(err)
				}
				demandFrom(t, b, "dialog")
				if r.handshake.conns[0].ended == nil {
					t.Error("the connection of the handshake was left open")
				}
				conn.End(upstream.ErrClosed)
				if events.ends != 1 {
					t.Errorf("%d ends of the session", events.ends)
				}
				r.open(t)
				if n := len(r.handshake.got()); n != 1 || r.probes != 1 {
					t.Errorf("%d handshakes, %d probes", n, r.probes)
				}
			})
		})
	}
}

// A server that says it speaks both eras has refused this client's handshake, and not
// that of the next.
func TestRefusedHandshakeOfAServerOfBothEras(t *testing.T) {
	inBubble(t, Auto, func(t *testing.T, r *rig) {
		r.finding = Finding{PerRequest: true, Handshake: true}
		good := r.handshake.reply
		r.handshake.reply = refusal
		_, reply, _ := r.open(t)
		demandFrom(t, reply, "dialog")
		r.handshake.reply = good
		_, reply, _ = r.open(t)
		demandFrom(t, reply, "handshake")
	})
}

// Where the server does not speak the other era either, its refusal is the answer.
func TestRefusalStands(t *testing.T) {
	inBubble(t, Auto, func(t *testing.T, r *rig) {
		r.handshake.reply = refusal
		conn, reply, events := r.open(t)
		if !strings.Contains(reply.reply, "Unsupported protocol version") || reply.ends != 1 || events.ends != 1 {
			t.Errorf("%q, %d ends, %d of the session", reply.reply, reply.ends, events.ends)
		}
		conn.End(upstream.ErrClosed)
		if events.ends != 1 {
			t.Errorf("%d ends of the session", events.ends)
		}
	})
}

// A server that cannot be asked has no era, and the next request asks again.
func TestNoVerdict(t *testing.T) {
	inBubble(t, Auto, func(t *testing.T, r *rig) {
		r.unclear = errUnclear
		if _, err := r.ask(t, listTools); err != errUnclear {
			t.Error(err)
		}
		r.unclear, r.finding.PerRequest = nil, true
		b, err := r.ask(t, listTools)
		if err != nil {
			t.Fatal(err)
		}
		demandFrom(t, b, "own")
	})
}

// A verdict that the server contradicts, or that is of another binary, is looked
// up anew.
func TestVerdictIsLookedUpAnew(t *testing.T) {
	inBubble(t, Auto, func(t *testing.T, r *rig) {
		r.finding.PerRequest = true
		_, _ = r.ask(t, listTools)
		r.own.reply = refusal
		_, _ = r.ask(t, listTools)
		r.finding.PerRequest = false
		b, _ := r.ask(t, listTools)
		demandFrom(t, b, "parked")
		if r.probes != 2 {
			t.Errorf("%d probes", r.probes)
		}
		r.binary, r.finding.PerRequest = "v2", true
		time.Sleep(2 * keyAge)
		r.own.reply = func(req upstream.Request) []byte {
			return wire.AppendResult(nil, req.Msg.Bytes(req.Msg.ID), []byte(`{"from":"own"}`))
		}
		b, _ = r.ask(t, listTools)
		demandFrom(t, b, "own")
		r.own.reply, r.own.end = nil, upstream.Errorf(-32603, "start_failed", "exited")
		_, _ = r.ask(t, listTools)
		r.finding.PerRequest = false
		b, _ = r.ask(t, listTools)
		demandFrom(t, b, "parked")
		if r.probes != 4 {
			t.Errorf("%d probes", r.probes)
		}
	})
}

// So is the verdict that a server is of the handshake era, which a slow start may
// have brought, where the server refuses the handshake.
func TestRefusedHandshakeOfTheBridge(t *testing.T) {
	for name, err := range map[string]*upstream.Error{
		"refused": upstream.Errorf(-32603, "start_failed", "the server refused initialize"),
		"HTTP":    {Code: -32603, Reason: "http_status", Message: "HTTP 400", Status: 400},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Auto, func(t *testing.T, r *rig) {
				r.parked.reply, r.parked.end = nil, err
				_, _ = r.ask(t, listTools)
				r.finding.PerRequest = true
				b, err := r.ask(t, listTools)
				if err != nil {
					t.Fatal(err)
				}
				demandFrom(t, b, "own")
			})
		})
	}
}

// A look that the end of the server cuts off says nothing of its era.
func TestLookIsCutOff(t *testing.T) {
	inBubble(t, Auto, func(t *testing.T, r *rig) {
		r.cfg.Probe = func(ctx context.Context) (Finding, error) {
			r.Close()
			<-ctx.Done()
			return Judge(nil), nil
		}
		if _, err := r.ask(t, listTools); !errors.Is(err, upstream.ErrShutdown) {
			t.Errorf("got %v", err)
		}
		if known := r.cfg.Verdicts.get(r.key()); known != (eras{}) {
			t.Errorf("the verdict is %v", known)
		}
	})
}

const annotated = `{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}`

// Headers of arguments are checked where the server cannot, by its list of tools,
// which is read once a minute and again before a call is refused.
func TestParamHeaders(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"region":"eu"},` + meta + `}}`
	inBubble(t, Legacy, func(t *testing.T, r *rig) {
		list := annotated
		r.parked.reply = func(req upstream.Request) []byte {
			if req.Method.String() == "tools/list" {
				return wire.AppendResult(nil, req.Msg.Bytes(req.Msg.ID), []byte(list))
			}
			return wire.AppendResult(nil, req.Msg.Bytes(req.Msg.ID), []byte(`{"from":"parked"}`))
		}
		send := func(region string) error {
			req := request(t, call)
			if region != "" {
				req.Header.Set("Mcp-Param-Region", region)
			}
			_, err := r.Ask(req, &box{t: t})
			return err
		}
		if err := send("eu"); err != nil {
			t.Error(err)
		}
		if err := send("eu"); err != nil {
			t.Error(err)
		}
		if n := len(r.parked.got()); n != 3 {
			t.Errorf("the server was asked %d times, want one list and two calls", n)
		}
		for _, region := range []string{"", "us"} {
			if err := send(region); err == nil || upstream.RPCError(err).Code != -32020 {
				t.Errorf("region %q: %v", region, err)
			}
		}
		time.Sleep(2 * staleAfter)
		list = strings.ReplaceAll(annotated, "Region", "Zone") // the tool has changed
		if err := send(""); err == nil || !strings.Contains(err.Error(), "Zone") {
			t.Error(err)
		}
	})
	inBubble(t, Modern, func(t *testing.T, r *rig) { // this one sees the headers itself
		b, err := r.ask(t, call)
		if err != nil {
			t.Fatal(err)
		}
		demandFrom(t, b, "own")
	})
}

// A list that the server was not asked for, which a client can bring about by what
// it declares, or by calls that wait for its answers, says nothing of any tool.
func TestListThatWasNotAskedFor(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"region":"eu"},` + meta + `}}`
	inBubble(t, Legacy, func(t *testing.T, r *rig) {
		r.parked.reply, r.parked.end = nil, upstream.Errorf(-32603, "busy", "all sessions wait for answers")
		_, _ = r.ask(t, call)
		r.parked.reply = func(req upstream.Request) []byte {
			return wire.AppendResult(nil, req.Msg.Bytes(req.Msg.ID), []byte(annotated))
		}
		if _, err := r.ask(t, call); err == nil || upstream.RPCError(err).Code != -32020 {
			t.Errorf("a call without the header of its argument: %v", err)
		}
	})
}

// A server that was of the per-request era only, and is not any more, gets a handshake
// again.
func TestDialogIsLookedUpAnew(t *testing.T) {
	inBubble(t, Auto, func(t *testing.T, r *rig) {
		r.finding.PerRequest = true
		r.handshake.reply = refusal
		r.open(t)
		_, reply, _ := r.open(t)
		demandFrom(t, reply, "dialog")
		r.dialog.reply, r.dialog.end = nil, upstream.Errorf(-32603, "era", "it does not speak 2026-07-28")
		r.open(t)
		r.handshake.reply = func(req upstream.Request) []byte {
			return wire.AppendResult(nil, req.Msg.Bytes(req.Msg.ID), []byte(`{"from":"handshake"}`))
		}
		_, reply, _ = r.open(t)
		demandFrom(t, reply, "handshake")
	})
}
