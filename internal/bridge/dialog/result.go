package dialog

import (
	"errors"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// result is what is read of every result of the per-request era.
type result struct {
	kind     string    // resultType, "" where there is none
	requests wire.Span // inputRequests
	state    wire.Span // requestState
}

// readResult refuses what two readers could read differently.
func readResult(msg *wire.Message) (result, error) {
	var found [3]wire.Span
	if _, err := wire.Pick(found[:], msg.Raw, msg.Result.Start, "resultType", "inputRequests", requestState); err != nil {
		return result{}, err
	}
	r := result{requests: found[1], state: found[2]}
	if found[0].Present() {
		kind, ok := wire.Unquote(found[0].Of(msg.Raw))
		if !ok || len(kind) == 0 {
			return r, errors.New("resultType is no string")
		}
		r.kind = string(kind)
	}
	return r, nil
}

// complete passes a result on in the shape of the handshake era.
func (k *call) complete(msg *wire.Message, buffer []byte) {
	if k.method == mcp.ToolsList && k.c.srv.cfg.Tools != nil {
		edited, err := wire.Parse(k.c.srv.cfg.Tools(msg.Raw))
		if err != nil || !isObject(edited.Raw, edited.Result) {
			k.end(upstream.Errorf(mcp.CodeInternal, "bad_answer", "the server's answer to tools/list cannot be read"))
			return
		}
		*msg, buffer = edited, nil
	}
	edits := k.plain(msg)
	if id := k.restore(msg); id != nil {
		edits = sorted(append(edits, id...))
	}
	if len(edits) > 0 {
		buffer = nil
	}
	k.finish(splice(msg.Raw, edits), buffer)
}

// plain takes out what the handshake era does not know, and wraps what it
// wants to be an object.
func (k *call) plain(msg *wire.Message) []wire.Edit {
	raw := msg.Raw
	edits, _ := wire.EditMembers(raw, msg.Result.Start, func(name []byte, value wire.Span) verdict {
		switch string(name) {
		case "resultType", "ttlMs", "cacheScope":
			return goes
		case "_meta":
			return withoutMeta(raw, value, mcp.MetaServerInfo)
		case "structuredContent":
			if k.method == mcp.ToolsCall {
				return k.wrapContent(raw, value)
			}
		case "tools":
			if k.method == mcp.ToolsList {
				return k.wrapTools(raw, value)
			}
		}
		return stays
	})
	return edits
}

// withoutMeta takes one member out of a _meta, and that away if it had no other.
func withoutMeta(raw []byte, meta wire.Span, key string) verdict {
	if !isObject(raw, meta) {
		return stays
	}
	found := false
	edits, left := wire.EditMembers(raw, meta.Start, func(name []byte, _ wire.Span) verdict {
		if string(name) == key {
			found = true
			return goes
		}
		return stays
	})
	if found && !left {
		return goes
	}
	return verdict{Edits: edits}
}
