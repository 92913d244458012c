package park

import (
	"crypto/rand"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// question is one request of the server that a client is to answer.
type question struct {
	key    string // in inputRequests and inputResponses
	method mcp.Method
	id     []byte // raw token as the server wrote it
	entry  []byte // {"method":...,"params":...}
	shown  bool   // a client has got it
	needs  need
}

// need is the capability that a question takes.
type need uint8

const (
	needForm need = iota + 1
	needURL
	needSampling
	needTools
	needRoots
)

func (c *capabilities) has(n need) bool {
	switch n {
	case needForm:
		return c.form
	case needURL:
		return c.url
	case needSampling:
		return c.sampling
	case needTools:
		return c.sampling && c.tools
	case needRoots:
		return c.roots
	}
	return false
}

func (n need) String() string {
	return [...]string{"", "elicitation.form", "elicitation.url", "sampling", "sampling.tools", "roots"}[n]
}

// newQuestion reads a request of the server. nil: it is none that a client of the
// per-request era can be asked.
func newQuestion(m *wire.Message) *question {
	q := &question{method: mcp.MethodOf(m.MethodName()), id: m.Bytes(m.ID)}
	params := m.Bytes(m.Params)
	object := len(params) > 0 && params[0] == '{'
	has := func(name string) bool {
		_, ok := wire.Lookup(params, name)
		return object && ok
	}
	short := ""
	switch q.method {
	case mcp.ElicitationCreate:
		short, q.needs = "elicitation-", needForm
		if has("mode") {
			mode, _ := wire.Lookup(params, "mode")
			switch name, _ := wire.Unquote(mode.Of(params)); string(name) {
			case "form":
			case "url":
				q.needs = needURL
			default:
				return nil
			}
		}
	case mcp.SamplingCreateMessage:
		short, q.needs = "sampling-", needSampling
		if has("tools") || has("toolChoice") {
			q.needs = needTools
		}
	case mcp.RootsList:
		short, q.needs = "roots-", needRoots
	default:
		return nil
	}
	q.key = short + rand.Text()
	q.entry = entry(q.method, m.Raw, m.Params)
	return q
}

// entry is one value of inputRequests. What belongs to a message or to another
// revision is left out of the params.
func entry(method mcp.Method, raw []byte, params wire.Span) []byte {
	text := append([]byte(`{"method":"`), method.String()...)
	text = append(text, '"')
	if params.Present() && raw[params.Start] == '{' {
		text = append(text, `,"params":`...)
		text = append(text, without(raw, params, func(name []byte) bool {
			switch string(name) {
			case "_meta", "task":
				return true
			}
			return string(name) == "elicitationId" && method == mcp.ElicitationCreate
		})...)
	}
	return append(text, '}')
}

// inputRequired appends the result by which a client is asked. info may be nil.
func inputRequired(id []byte, questions []*question, state string, info []byte) []byte {
	text := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, q := range questions {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(wire.AppendQuote(text, q.key), ':')
		text = append(text, q.entry...)
	}
	text = append(text, `},"requestState":`...)
	text = wire.AppendQuote(text, state)
	if info != nil {
		text = append(text, `,"_meta":{"`+mcp.MetaServerInfo+`":`...)
		text = append(append(text, info...), '}')
	}
	return wire.AppendResult(nil, id, append(text, '}'))
}

// readResponses reads the answers of a retry by their keys. They are objects.
func readResponses(m *wire.Message) (map[string][]byte, error) {
	at := m.P.InputResponses
	if !at.Present() {
		return nil, nil
	}
	bad := func(why string) error {
		return upstream.Errorf(mcp.CodeInvalidParams, "input_responses", "params.inputResponses: %s", why)
	}
	if m.Raw[at.Start] != '{' {
		return nil, bad("no object")
	}
	all := make(map[string][]byte)
	for token, value := range wire.Members(m.Raw, at.Start) {
		name, _ := wire.Unquote(token.Of(m.Raw))
		if _, twice := all[string(name)]; twice {
			return nil, bad("more than one answer under one key")
		}
		if m.Raw[value.Start] != '{' {
			return nil, bad("an answer is no object")
		}
		all[string(name)] = value.Of(m.Raw)
	}
	return all, nil
}

// refusal is what the server gets for a question that its client is not asked, or
// did not answer. An elicitation has a form for that.
func refusal(method mcp.Method, id []byte, err *upstream.Error) []byte {
	if method == mcp.ElicitationCreate {
		return wire.AppendResult(nil, id, []byte(`{"action":"cancel"}`))
	}
	return upstream.ErrorReply(id, err)
}

var (
	errManyParked = upstream.Errorf(mcp.CodeInternal, "busy", "too many calls wait for answers of their clients")
	errCallOver   = upstream.Errorf(mcp.CodeInternal, "call_over", "the call that this was asked for is over")
	errNoAnswer   = upstream.Errorf(mcp.CodeInternal, "expired", "the client did not answer in time")
	errNoCall     = upstream.Errorf(mcp.CodeMethodNotFound, "no_call", "asked outside of a call, when the client cannot be asked anything")
)

func errUndeclared(n need) *upstream.Error {
	return upstream.Errorf(mcp.CodeMethodNotFound, "capability", "the client did not declare the capability %s", n)
}
