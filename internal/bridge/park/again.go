package park

import (
	"crypto/rand"

	"github.com/signalbox-mcp/signalbox/internal/bridge/state"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// failed is the server's error in the form of the per-request era. That a URL
// must be visited first (-32042, MCP 2025-11-25, client/elicitation) becomes a
// question to the client, after which it makes the request anew; nothing waits for
// that, here or at the server.
func (k *call) failed(e *exchange, m *wire.Message) []byte {
	f := readFailure(m)
	if f.code != mcp.CodeURLElicitationRequired {
		return errorUp(m, e.id, k.uri)
	}
	visits := readVisits(m, f.data)
	switch {
	case visits == nil || !k.asking && e.client.declares.url: // the method has no form for it
		return errorUp(m, e.id, k.uri)
	case !e.client.declares.url:
		return wire.AppendError(nil, e.id, mcp.CodeMissingCapability, "the server asks for a URL to be visited first, and the request does not declare elicitation.url",
			[]byte(`{"requiredCapabilities":{"elicitation":{"url":{}}}}`))
	}
	token := k.srv.cfg.Ring.Seal(k.binding, state.Again, nil, k.srv.cfg.Question)
	k.srv.count.questions(asked, len(visits))
	return inputRequired(e.id, visits, token, k.ses.offers.info)
}

// readVisits makes questions of data.elicitations. nil: it is not what the
// revision says.
func readVisits(m *wire.Message, data wire.Span) []*question {
	at, ok := wire.Lookup(data.Of(m.Raw), "elicitations")
	if !ok || data.Of(m.Raw)[at.Start] != '[' {
		return nil
	}
	raw := data.Of(m.Raw)
	var all []*question
	for e := range wire.Elements(raw, at.Start) {
		if raw[e.Start] != '{' {
			return nil
		}
		mode, _ := wire.Lookup(e.Of(raw), "mode")
		url, _ := wire.Lookup(e.Of(raw), "url")
		if string(mode.Of(e.Of(raw))) != `"url"` || !url.Present() {
			return nil
		}
		all = append(all, &question{key: "elicitation-" + rand.Text(), method: mcp.ElicitationCreate, entry: entry(mcp.ElicitationCreate, raw, e)})
	}
	return all
}

// retry goes on with a call of which the client brings the requestState.
func (s *Server) retry(c *client, req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	m := &req.Msg
	token, ok := wire.Unquote(m.Bytes(m.P.RequestState))
	if !ok {
		return nil, state.ErrState
	}
	kind, payload, err := s.cfg.Ring.Open(state.Bind(s.cfg.Name, &req), token)
	if err != nil {
		return nil, err
	}
	switch kind {
	case state.Again:
		return s.begin(c, req, sink)
	case state.Parked:
	default:
		return nil, state.ErrState
	}
	t, ok := readTicket(payload)
	switch {
	case !ok:
		return nil, state.ErrState
	case t.replica != s.cfg.Replica:
		return nil, &upstream.Elsewhere{Replica: t.replica}
	}
	answers, err := readResponses(m)
	if err != nil {
		return nil, err
	}
	return s.resume(t, answers, c, &req, sink)
}
