package dialog

import (
	"bytes"
	"slices"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Names of what a retry says (2026-07-28, basic/patterns/mrtr).
const (
	inputResponses = "inputResponses"
	requestState   = "requestState"
)

// retries tells whether a request may have to be sent again: only these may be
// answered with input_required.
func retries(m mcp.Method) bool {
	return m == mcp.ToolsCall || m == mcp.PromptsGet || m == mcp.ResourcesRead
}

// encode makes the bytes of a leg: the client's own, under this id, with what
// the session has said once, and what the round says. All else stays.
func (k *call) encode(id []byte, r *round) ([]byte, error) {
	m := &k.msg
	meta := k.c.meta()
	var more [][]byte // members for params
	if r.responses != nil {
		more = append(more, quoted(inputResponses, r.responses))
	}
	if r.state != nil {
		more = append(more, quoted(requestState, r.state))
	}
	var edits []wire.Edit
	switch {
	case !m.Params.Present():
		more = append(more, object("_meta", meta))
		end := uint32(len(m.Raw) - 1) // of the message, which has other members
		edits = []wire.Edit{{Span: wire.Span{Start: end, End: end}, New: slices.Concat([]byte(`,"params":{`), bytes.Join(more, comma), []byte("}"))}}
	case m.Raw[m.Params.Start] == 'n':
		more = append(more, object("_meta", meta))
		edits = []wire.Edit{{Span: m.Params, New: slices.Concat([]byte("{"), bytes.Join(more, comma), []byte("}"))}}
	default:
		var err error
		if edits, err = editParams(m, meta, more, retries(k.method)); err != nil {
			return nil, err
		}
	}
	if k.again {
		edits = sorted(append(edits, wire.Edit{Span: m.ID, New: id}))
	}
	return splice(m.Raw, edits), nil
}

var comma = []byte(",")

// editParams puts members into params and into params._meta, in place of what is
// called so already.
func editParams(m *wire.Message, meta []byte, more [][]byte, mayRetry bool) ([]wire.Edit, error) {
	raw := m.Raw
	if raw[m.Params.Start] != '{' {
		return nil, upstream.Errorf(mcp.CodeInvalidParams, "params", "params is no object")
	}
	hasMeta, badMeta := false, false
	edits, left := wire.EditMembers(raw, m.Params.Start, func(name []byte, value wire.Span) verdict {
		switch {
		case mayRetry && (isName(name, inputResponses) || isName(name, requestState)):
			return goes // the client's revision has no such thing
		case string(name) != "_meta":
			return stays
		}
		hasMeta = true
		switch raw[value.Start] {
		case '{':
			return editMeta(raw, value, meta)
		case 'n':
			return replace(value, slices.Concat([]byte("{"), meta, []byte("}")))
		}
		badMeta = true
		return stays
	})
	if badMeta {
		return nil, upstream.Errorf(mcp.CodeInvalidParams, "params", "params._meta is no object")
	}
	if !hasMeta {
		more = append(more, object("_meta", meta))
	}
	return front(edits, m.Params, more, left), nil
}

func editMeta(raw []byte, value wire.Span, meta []byte) verdict {
	edits, left := wire.EditMembers(raw, value.Start, func(name []byte, _ wire.Span) verdict {
		for _, ours := range []string{mcp.MetaVersion, mcp.MetaClientCapabilities, mcp.MetaClientInfo, mcp.MetaLogLevel} {
			if isName(name, ours) {
				return goes
			}
		}
		return stays
	})
	return verdict{Edits: front(edits, value, [][]byte{meta}, left)}
}

// front puts members in front of those of an object; left tells whether it has
// some still after the edits.
func front(edits []wire.Edit, object wire.Span, members [][]byte, left bool) []wire.Edit {
	if len(members) == 0 {
		return edits
	}
	text := bytes.Join(members, comma)
	if left {
		text = append(text, ',')
	}
	at := object.Start + 1
	return slices.Insert(edits, 0, wire.Edit{Span: wire.Span{Start: at, End: at}, New: text})
}

// meta returns the members of params._meta that the session gives each request.
func (c *conn) meta() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.level == nil {
		return slices.Clone(c.said.meta)
	}
	return slices.Concat(c.said.meta, comma, quoted(mcp.MetaLogLevel, c.level))
}

// isName tells whether a reader that does not care for case takes name for want.
func isName(name []byte, want string) bool {
	return len(name) >= len(want) && bytes.EqualFold(name, []byte(want))
}

// quoted is a member; name needs no escapes.
func quoted(name string, value []byte) []byte {
	return slices.Concat([]byte(`"`+name+`":`), value)
}

// object is a member that is an object with these members.
func object(name string, members []byte) []byte {
	return slices.Concat([]byte(`"`+name+`":{`), members, []byte("}"))
}

func sorted(edits []wire.Edit) []wire.Edit {
	slices.SortStableFunc(edits, func(a, b wire.Edit) int { return int(a.Span.Start) - int(b.Span.Start) })
	return edits
}
