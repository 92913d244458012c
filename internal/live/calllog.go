package live

import (
	"context"
	"log/slog"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/observe"
)

// log writes down a call that is over, without its contents: for whoever looks
// for one at debug level.
func (c *callSink) log(outcome string, size measured, now time.Time) {
	s := c.st.s
	log := s.m.cfg.Log
	if size.away || !log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	s.mu.Lock()
	who := nameOf(s.who)
	s.mu.Unlock()
	var id observe.Message
	id.SetID(c.id)
	log.Debug("call ended", "server", s.backend.Name, "session", s.Hash(), "principal", who, "method", c.method.String(), "request", id.ID(),
		"reason", outcome, "duration", now.Sub(c.started).Round(time.Microsecond).String(), "bytes", size.out)
}
