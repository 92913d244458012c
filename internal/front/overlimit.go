package front

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
)

// limitLog tells of refusals that a limit is the reason of: the first of each
// kind is a warning, for the limit may be wrong; those that follow are the
// course of things, and no more than a few of them are told.
type limitLog struct {
	mu    sync.Mutex
	kinds map[string]*rate.Limiter // by reason, which is one of a fixed set
}

// Log lines of one kind: at once, and a second.
const (
	limitLogBurst = 10
	limitLogRate  = 1
)

// level is that of the next line of this kind; ok is false where there have
// been enough.
func (l *limitLog) level(reason string) (level slog.Level, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.kinds[reason]; k != nil {
		return slog.LevelDebug, k.Allow()
	}
	if l.kinds == nil {
		l.kinds = make(map[string]*rate.Limiter)
	}
	l.kinds[reason] = rate.NewLimiter(limitLogRate, limitLogBurst)
	return slog.LevelWarn, true
}

// note logs err if it is a limit's. The answer is for the caller to give.
func (f *Front) note(r *http.Request, server string, err error) {
	e := refusalOf(err)
	if e.limit == "" {
		return
	}
	if level, ok := f.limits.level(e.reason); ok {
		f.cfg.Log.Log(context.WithoutCancel(r.Context()), level, "request refused: "+e.message, "reason", e.reason, "limit", e.limit,
			"status", e.status, "server", server, "principal", who(r).String(), "client", f.network(r))
	}
}

// decline notes err and answers with it.
func (f *Front) decline(w http.ResponseWriter, r *http.Request, server string, id []byte, err error) {
	f.note(r, server, err)
	f.fail(w, id, err)
}
