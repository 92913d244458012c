package bridge

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/bridge/state"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Between a client and a server of the per-request era everything passes but two
// things that a server gives to one client and takes back from any: the
// requestState of a call that needs input, and the ids of tasks. The server sees one
// client, Signalbox, whoever asks; so these are sealed for the principal that they
// are given to (2026-07-28, basic/patterns/mrtr; SEP-2663). And the versions that
// server/discover lists are Signalbox's, as everywhere else.

// stateTime is how long a server's requestState is good for. The server may think
// shorter of it.
const stateTime = 24 * time.Hour

// passing is what of one call has to be looked at.
type passing struct {
	upstream.Sink
	s      *Server
	asks   bool          // it may be answered by input_required
	bound  state.Binding // of its requestState, if it asks
	tasks  state.Binding // of the task ids in it
	listen bool
}

// pass sends a request to a server of its own era.
func (s *Server) pass(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	p := &passing{Sink: sink, s: s, tasks: state.BindTask(s.cfg.Name, &req), listen: req.Method == mcp.SubscriptionsListen}
	switch req.Method {
	case mcp.ToolsCall, mcp.PromptsGet, mcp.ResourcesRead:
		p.asks, p.bound = true, state.Bind(s.cfg.Name, &req)
		if err := p.unwrap(&req); err != nil {
			return nil, err
		}
	case mcp.TasksGet, mcp.TasksUpdate, mcp.TasksCancel:
		if err := p.nameTask(&req); err != nil {
			return nil, err
		}
	case mcp.SubscriptionsListen:
		if err := p.nameTasks(&req); err != nil {
			return nil, err
		}
	}
	return s.cfg.PerRequest.Ask(req, p)
}

// A wrapped requestState: whether the server gave one, the address that did, and
// the token as it stood in the JSON text, quotes included.
func appendWrapped(dst []byte, address string, token []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(address)))
	dst = append(dst, address...)
	return append(dst, token...)
}

func cutWrapped(payload []byte) (address string, token []byte, ok bool) {
	n, size := binary.Uvarint(payload)
	if size <= 0 || n > uint64(len(payload)-size) {
		return "", nil, false
	}
	rest := payload[size:]
	return string(rest[:n]), rest[n:], true
}

// unwrap puts the server's own requestState in the place of the sealed one, or
// nothing, where the server gave none.
func (p *passing) unwrap(req *upstream.Request) error {
	m := &req.Msg
	if !m.P.RequestState.Present() { // nor in other letters, which some servers read as well
		var found [1]wire.Span
		if _, err := wire.Pick(found[:], m.Raw, m.Params.Start, "requestState"); err != nil {
			return state.ErrState
		}
		return nil
	}
	sealed, _ := wire.Unquote(m.Bytes(m.P.RequestState))
	kind, payload, err := p.s.cfg.Ring.Open(p.bound, sealed)
	if err != nil || kind != state.Wrapped {
		return state.ErrState
	}
	address, token, ok := cutWrapped(payload)
	if !ok {
		return state.ErrState
	}
	req.Address = address
	if len(token) == 0 {
		return req.Rewrite(wire.Remove(m.Raw, "params", "requestState"))
	}
	return req.Rewrite(wire.Splice(nil, m.Raw, wire.Edit{Span: m.P.RequestState, New: token}))
}

// nameTask puts the server's own name of a task in the place of the sealed one.
func (p *passing) nameTask(req *upstream.Request) error {
	m := &req.Msg
	address, own, err := p.openTask(m.Bytes(m.P.TaskID))
	if err != nil {
		return err
	}
	req.Address = address
	return req.Rewrite(wire.Splice(nil, m.Raw, wire.Edit{Span: m.P.TaskID, New: own}))
}

func (p *passing) openTask(token []byte) (address string, own []byte, err error) {
	sealed, _ := wire.Unquote(token)
	kind, payload, err := p.s.cfg.Ring.Open(p.tasks, sealed)
	address, own, ok := cutWrapped(payload)
	if err != nil || kind != state.Task || !ok {
		return "", nil, errTask
	}
	return address, own, nil
}

var errTask = upstream.Errorf(mcp.CodeInvalidParams, "task", "Unknown task: no such task was given to you")

// nameTasks does it for the tasks that a subscription asks for.
func (p *passing) nameTasks(req *upstream.Request) error {
	raw := req.Msg.Raw
	var asked, list [1]wire.Span
	_, err := wire.Pick(asked[:], raw, req.Msg.Params.Start, "notifications")
	if err == nil && asked[0].Present() {
		_, err = wire.Pick(list[:], raw, asked[0].Start, "taskIds")
	}
	switch {
	case err != nil:
		return upstream.Errorf(mcp.CodeInvalidParams, "notifications", "params.notifications cannot be read: %v", err)
	case !list[0].Present() || string(list[0].Of(raw)) == "null":
		return nil
	case raw[list[0].Start] != '[':
		return upstream.Errorf(mcp.CodeInvalidParams, "notifications", "params.notifications: taskIds is no array")
	}
	var edits []wire.Edit
	for token := range wire.Elements(raw, list[0].Start) {
		address, own, err := p.openTask(token.Of(raw))
		if err != nil {
			return err
		}
		req.Address = address
		edits = append(edits, wire.Edit{Span: token, New: own})
	}
	return req.Rewrite(wire.Splice(nil, raw, edits...))
}

// Deliver seals what is for this principal only.
func (p *passing) Deliver(f upstream.Frame) upstream.Verdict {
	switch {
	case f.Relation == upstream.Reply:
		p.reply(&f)
	case f.Method == mcp.NotifTasks || f.Method == mcp.NotifTasksStatus:
		p.seal(&f, f.Address, []string{"params", "taskId"})
	case p.listen && f.Method == mcp.NotifSubscriptionsAcknowledged:
		p.sealList(&f)
	}
	return p.Sink.Deliver(f)
}

func (p *passing) reply(f *upstream.Frame) {
	if wire.IsErrorResponse(f.Data) {
		p.refused(f.Data)
		return
	}
	if p.asks && p.wrap(f) {
		return
	}
	switch f.Method {
	case mcp.ServerDiscover: // clients are served in all of these, by whatever server
		if list, ok := wire.Lookup(f.Data, "result", "supportedVersions"); ok {
			f.Data, f.Buffer = wire.Splice(nil, f.Data, wire.Edit{Span: list, New: []byte(mcp.SupportedVersions)}), nil
		}
		return
	case mcp.ToolsCall:
		if kind, ok := wire.Lookup(f.Data, "result", "resultType"); !ok || string(kind.Of(f.Data)) != `"task"` {
			return
		}
	case mcp.TasksGet:
	default:
		return
	}
	p.seal(f, f.Address, []string{"result", "taskId"})
	p.seal(f, f.Address, []string{"result", "task", "taskId"})
}

// refused: a server that says it does not speak the revision has become another.
func (p *passing) refused(reply []byte) {
	code, _ := wire.Lookup(reply, "error", "code")
	if string(code.Of(reply)) == "-32022" {
		p.s.note(func(e *eras) { e.perRequest = unknown })
	}
}

// wrap seals the requestState of an input_required result; false: it is none.
func (p *passing) wrap(f *upstream.Frame) bool {
	kind, ok := wire.Lookup(f.Data, "result", "resultType")
	if !ok || string(kind.Of(f.Data)) != `"input_required"` {
		return false
	}
	token, given := wire.Lookup(f.Data, "result", "requestState")
	sealed := p.s.cfg.Ring.Seal(p.bound, state.Wrapped, appendWrapped(nil, f.Address, token.Of(f.Data)), stateTime)
	quoted := `"` + sealed + `"`
	edit := wire.Edit{Span: token, New: []byte(quoted)}
	if !given {
		result, _ := wire.Lookup(f.Data, "result")
		edit = wire.Insert(f.Data, result.Start, `"requestState":`+quoted)
	}
	f.Data, f.Buffer = wire.Splice(nil, f.Data, edit), nil
	return true
}

// seal puts a sealed name in the place of a task's own.
func (p *passing) seal(f *upstream.Frame, address string, path []string) {
	token, ok := wire.Lookup(f.Data, path...)
	if !ok || f.Data[token.Start] != '"' {
		return
	}
	f.Data, f.Buffer = wire.Splice(nil, f.Data, p.sealed(address, f.Data, token)), nil
}

func (p *passing) sealed(address string, raw []byte, token wire.Span) wire.Edit {
	name := p.s.cfg.Ring.Name(p.tasks, state.Task, appendWrapped(nil, address, bytes.Clone(token.Of(raw))))
	return wire.Edit{Span: token, New: []byte(`"` + name + `"`)}
}

// sealList does it for the tasks that an acknowledgement names.
func (p *passing) sealList(f *upstream.Frame) {
	list, ok := wire.Lookup(f.Data, "params", "notifications", "taskIds")
	if !ok || f.Data[list.Start] != '[' {
		return
	}
	var edits []wire.Edit
	for token := range wire.Elements(f.Data, list.Start) {
		if f.Data[token.Start] == '"' {
			edits = append(edits, p.sealed(f.Address, f.Data, token))
		}
	}
	f.Data, f.Buffer = wire.Splice(nil, f.Data, edits...), nil
}

// End notices a server that cannot be what it was.
func (p *passing) End(reason error) {
	if e := upstream.RPCError(reason); reason != nil && e.Reason == "start_failed" {
		p.s.note(func(e *eras) { e.perRequest = unknown })
	}
	p.Sink.End(reason)
}
