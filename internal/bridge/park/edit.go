package park

import (
	"errors"
	"slices"
	"strconv"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

func isRetry(name []byte) bool {
	return string(name) == "requestState" || string(name) == "inputResponses"
}

// down is a client's request as the server gets it: under another id and progress
// token, and without what only the per-request era knows. All other bytes stay.
func down(m *wire.Message, id []byte) []byte {
	edits := []wire.Edit{{Span: m.ID, New: id}}
	if m.P.Meta.Present() && m.Raw[m.P.Meta.Start] == '{' {
		edits = drop(edits, m.Raw, m.P.Meta, wire.IsReserved)
	}
	if m.P.RequestState.Present() || m.P.InputResponses.Present() {
		edits = drop(edits, m.Raw, m.Params, isRetry)
	}
	if wire.ValidIDToken(m.Bytes(m.P.MetaToken)) {
		edits = append(edits, wire.Edit{Span: m.P.MetaToken, New: id})
	}
	return splice(m.Raw, edits)
}

func splice(raw []byte, edits []wire.Edit) []byte {
	slices.SortStableFunc(edits, func(a, b wire.Edit) int { return int(a.Span.Start) - int(b.Span.Start) })
	return wire.Splice(nil, raw, edits...)
}

// drop appends the edits that take members out of an object, by their decoded names.
func drop(edits []wire.Edit, raw []byte, object wire.Span, out func(name []byte) bool) []wire.Edit {
	cuts, _ := wire.EditMembers(raw, object.Start, func(name []byte, _ wire.Span) wire.Change { return wire.Change{Drop: out(name)} })
	return append(edits, cuts...)
}

// without is a copy of the object in raw without some members.
func without(raw []byte, object wire.Span, out func(name []byte) bool) []byte {
	part := object.Of(raw)
	return splice(part, drop(nil, part, wire.Span{End: uint32(len(part))}, out))
}

// cacheable are the methods whose results say how long they may be kept (MCP
// 2026-07-28, server/utilities/caching).
func cacheable(m mcp.Method) bool {
	switch m {
	case mcp.ServerDiscover, mcp.ToolsList, mcp.PromptsList, mcp.ResourcesList, mcp.ResourcesTemplatesList, mcp.ResourcesRead:
		return true
	}
	return false
}

var errResult = upstream.Errorf(mcp.CodeInternal, "bad_answer", "the server's result is no JSON object")

// up is a server's result as a client of the per-request era gets it: under the
// client's id and with what that era wants in each result. info is the server's
// serverInfo, nil if it gave none. All other bytes stay, but for what tools say of
// tasks.
func up(m *wire.Message, id []byte, method mcp.Method, info []byte) ([]byte, error) {
	raw, at := m.Raw, m.Result
	if raw[at.Start] != '{' {
		return nil, errResult
	}
	var kind, ttl, scope, meta, tools wire.Span
	for token, value := range wire.Members(raw, at.Start) {
		name, _ := wire.Unquote(token.Of(raw))
		var note *wire.Span
		switch string(name) {
		case "resultType":
			note = &kind
		case "ttlMs":
			note = &ttl
		case "cacheScope":
			note = &scope
		case "_meta":
			note = &meta
		case "tools":
			note = &tools
		}
		if note != nil && !note.Present() {
			*note = value
		}
	}
	var add []byte
	member := func(text string) {
		if len(add) > 0 {
			add = append(add, ',')
		}
		add = append(add, text...)
	}
	if !kind.Present() {
		member(`"resultType":"complete"`)
	}
	if cacheable(method) && (!kind.Present() || string(kind.Of(raw)) == `"complete"`) {
		if !ttl.Present() {
			member(`"ttlMs":0`)
		}
		if !scope.Present() {
			member(`"cacheScope":"private"`)
		}
	}
	edits := []wire.Edit{{Span: m.ID, New: id}}
	if info != nil {
		own := `"` + mcp.MetaServerInfo + `":` + string(info)
		switch {
		case !meta.Present():
			member(`"_meta":{` + own + `}`)
		case raw[meta.Start] == '{':
			if _, has := wire.Lookup(meta.Of(raw), mcp.MetaServerInfo); !has {
				edits = append(edits, wire.Insert(raw, meta.Start, own))
			}
		}
	}
	if len(add) > 0 {
		edits = append(edits, wire.Insert(raw, at.Start, string(add)))
	}
	if method == mcp.ToolsList && tools.Present() && raw[tools.Start] == '[' {
		for tool := range wire.Elements(raw, tools.Start) {
			if raw[tool.Start] == '{' {
				edits = drop(edits, raw, tool, func(name []byte) bool { return string(name) == "execution" })
			}
		}
	}
	return splice(raw, edits), nil
}

// failure is an error response of the server, read.
type failure struct {
	code   int // 0 too where it is no integer
	codeAt wire.Span
	data   wire.Span
}

func readFailure(m *wire.Message) failure {
	var f failure
	for token, value := range wire.Members(m.Raw, m.Error.Start) {
		switch name, _ := wire.Unquote(token.Of(m.Raw)); string(name) {
		case "code":
			if !f.codeAt.Present() {
				f.codeAt = value
				f.code, _ = strconv.Atoi(string(value.Of(m.Raw)))
			}
		case "data":
			if !f.data.Present() {
				f.data = value
			}
		}
	}
	return f
}

// codeUp is an error code as the per-request era allows it (MCP 2026-07-28,
// basic/index, "Error codes").
func codeUp(code int) int {
	switch {
	case code == mcp.CodeResourceNotFound:
		return mcp.CodeInvalidParams
	case code == 0, code == mcp.CodeURLElicitationRequired, code <= mcp.CodeServer && code >= -32019:
		return mcp.CodeInternal
	}
	return code
}

// errorUp is a server's error as a client of the per-request era gets it. uri is
// the token of the resource that the request named, nil for none.
func errorUp(m *wire.Message, id, uri []byte) []byte {
	raw := m.Raw
	edits := []wire.Edit{{Span: m.ID, New: id}}
	if !m.ID.Present() { // or null, where the server could not read the request
		if at, ok := wire.Lookup(raw, "id"); ok {
			edits[0].Span = at
		} else {
			edits[0] = wire.Insert(raw, 0, `"id":`+string(id))
		}
	}
	f := readFailure(m)
	code := strconv.Itoa(codeUp(f.code))
	var add []byte
	switch {
	case !f.codeAt.Present():
		add = append(add, `"code":`+code...)
	case string(f.codeAt.Of(raw)) != code:
		edits = append(edits, wire.Edit{Span: f.codeAt, New: []byte(code)})
	}
	if f.code == mcp.CodeResourceNotFound && uri != nil {
		member := `"uri":` + string(uri)
		switch {
		case !f.data.Present():
			if len(add) > 0 {
				add = append(add, ',')
			}
			add = append(add, `"data":{`+member+`}`...)
		case raw[f.data.Start] == '{':
			if _, has := wire.Lookup(f.data.Of(raw), "uri"); !has {
				edits = append(edits, wire.Insert(raw, f.data.Start, member))
			}
		}
	}
	if len(add) > 0 {
		edits = append(edits, wire.Insert(raw, m.Error.Start, string(add)))
	}
	return splice(raw, edits)
}

// errorOf is what a client is told of a call that the server did not answer.
func errorOf(err error) error {
	e := upstream.RPCError(err)
	if code := codeUp(e.Code); code != e.Code {
		return &upstream.Error{Code: code, Reason: e.Reason, Message: e.Message, Status: e.Status, RetryAfter: e.RetryAfter, Err: err}
	}
	return err
}

// unknownMethod is err, or what it means for a method that is none of the protocol's:
// some servers refuse the request by HTTP, instead of answering it.
func unknownMethod(m mcp.Method, err error) error {
	var e *upstream.Error
	if m != mcp.Other || !errors.As(err, &e) {
		return err
	}
	switch e.Status {
	case 400, 404, 405, 501:
		return &upstream.Error{Code: mcp.CodeMethodNotFound, Reason: "unknown_method", Message: "Method not found: " + e.Message, Status: e.Status, Err: err}
	}
	return err
}
