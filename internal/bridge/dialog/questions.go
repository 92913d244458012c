package dialog

import (
	"bytes"
	"slices"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// questions reads inputRequests. fault says what the server has done wrong;
// unable, what this client cannot be asked.
func (k *call) questions(raw []byte, requests wire.Span) (asked []*question, fault string, unable *upstream.Error) {
	if !requests.Present() {
		return nil, "", nil
	}
	if !isObject(raw, requests) {
		return nil, "has inputRequests that are no object", nil
	}
	names := make(map[string]bool)
	for key, value := range wire.Members(raw, requests.Start) {
		name, _ := wire.Unquote(key.Of(raw))
		if names[string(name)] || len(names) == maxQuestions {
			return nil, "asks twice under one name, or for too much at once", nil
		}
		names[string(name)] = true
		q, fault, unable := k.question(raw, value)
		if q == nil {
			return nil, fault, unable
		}
		q.name = bytes.Clone(key.Of(raw))
		asked = append(asked, q)
	}
	return asked, "", nil
}

func (k *call) question(raw []byte, request wire.Span) (q *question, fault string, unable *upstream.Error) {
	if !isObject(raw, request) {
		return nil, "has an input request that is no object", nil
	}
	name, _ := member(raw, request, "method")
	method, _ := wire.Unquote(name.Of(raw))
	params, _ := member(raw, request, "params")
	if params.Present() && !isObject(raw, params) {
		return nil, "has an input request whose params are no object", nil
	}
	q = &question{k: k, method: mcp.MethodOf(method)}
	needs, ok := q.needs(raw, params, k.c.said.can)
	switch {
	case needs == "":
		return nil, "asks for " + cut(method, 64) + ", which is no input request", nil
	case !ok:
		return nil, "", upstream.Errorf(mcp.CodeInternal, "capability",
			"the server %q asks for %s, and the client has not declared the capability %s", k.c.srv.cfg.Name, q.method, needs)
	}
	q.id = wire.AppendQuote(nil, mint())
	q.key, _ = idKey(q.id)
	q.frame = slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), q.id, []byte(`,"method":`), name.Of(raw))
	if params.Present() {
		q.frame = slices.Concat(q.frame, []byte(`,"params":`), q.params(raw, params))
	}
	q.frame = append(q.frame, '}')
	return q, "", nil
}

// needs names the capability that a question needs, and tells whether the client
// has it. "": the method is no question.
func (q *question) needs(raw []byte, params wire.Span, can capabilities) (name string, ok bool) {
	switch q.method {
	case mcp.RootsList:
		return "roots", can.roots
	case mcp.SamplingCreateMessage:
		if can.sampling && (has(raw, params, "tools") || has(raw, params, "toolChoice")) {
			return "sampling.tools", can.tools
		}
		return "sampling", can.sampling
	case mcp.ElicitationCreate:
		if isURL(raw, params) {
			return "elicitation.url", can.url
		}
		return "elicitation.form", can.form
	}
	return "", false
}

func isURL(raw []byte, params wire.Span) bool {
	mode, _ := member(raw, params, "mode")
	name, _ := wire.Unquote(mode.Of(raw))
	return string(name) == "url"
}

// params are those of the server. A question by URL gets the id that it has in
// 2025-11-25 (client/elicitation).
func (q *question) params(raw []byte, params wire.Span) []byte {
	if _, has := member(raw, params, "elicitationId"); has || q.method != mcp.ElicitationCreate || !isURL(raw, params) {
		return params.Of(raw)
	}
	id := quoted("elicitationId", wire.AppendQuote(nil, mint()))
	return within(raw, params, []wire.Edit{wire.Insert(raw, params.Start, string(id))})
}
