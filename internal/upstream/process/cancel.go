package process

import (
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Cancel ends the call without waiting for the server, which is told.
func (k *call) Cancel(reason error) {
	h := k.conn.hub
	h.mu.Lock()
	taken := h.takeLocked(k)
	if taken {
		h.retractLocked(k, reason)
	}
	h.mu.Unlock()
	if taken {
		k.fail(reason)
	}
}

// retractLocked makes sure that the process does no more for k, which has
// left the table, than it must.
func (h *hub) retractLocked(k *call, reason error) {
	if k.method == mcp.Initialize || h.unseenLocked(k) {
		return // initialize must not be cancelled (MCP 2025-11-25, cancellation)
	}
	if k.logs {
		h.late, h.lateUntil = k.n, time.Now().Add(lateLogs)
	}
	line := []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`)
	line = appendWireID(line, k.conn.part, k.n, k.id)
	line = append(line, `,"reason":`...)
	line = wire.AppendQuote(line, reason.Error())
	h.writeCancelLocked(append(line, "}}"...))
}

// unseenLocked tells that the process has not seen the request and never will:
// it was not sent, or is still in the queue and taken back.
func (h *hub) unseenLocked(k *call) bool {
	return k.ticket == nil || h.link == nil || h.link.pipe == nil || h.link.pipe.Withdraw(k.ticket)
}

func (h *hub) writeCancelLocked(line []byte) {
	if err := h.writeLocked(line, nil); err != nil {
		h.log.Debug("cancel not sent", "err", err)
	}
}

// cancelledLocked passes notifications/cancelled on with the process's id of
// the call, and returns the call that it ends. Only the sender's own calls are
// looked at. A client that has several calls open under one id cannot say which
// one it means.
func (c *conn) cancelledLocked(m *wire.Message) []over {
	want, ok := idKey(m.Bytes(m.P.RequestID))
	var hit *call
	for _, k := range c.calls {
		if key, _ := idKey(k.id); !ok || key != want || k.method == mcp.Initialize {
			continue
		}
		if hit != nil {
			c.hub.srv.drops.add(DropAmbiguousCancel, hit.method.String())
			return nil
		}
		hit = k
	}
	if hit == nil {
		c.hub.srv.drops.add(DropUnknownCancel, mcp.NotifCancelled.String())
		return nil
	}
	h := c.hub
	h.takeLocked(hit)
	if !h.unseenLocked(hit) {
		id := appendWireID(nil, c.part, hit.n, hit.id)
		line := wire.Splice(nil, m.Raw, wire.Edit{Span: m.P.RequestID, New: id})
		h.writeCancelLocked(ownLine(line))
	}
	return []over{{hit, upstream.ErrCancelled}}
}

// idKey is the value of an id with its type, so that other spellings of one
// string are the same id and 1 is not "1".
func idKey(tok []byte) (string, bool) {
	if s, ok := wire.Unquote(tok); ok {
		return "s" + string(s), true
	}
	return "n" + string(tok), wire.ValidIDToken(tok)
}
