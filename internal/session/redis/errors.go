package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/redis/rueidis"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// kind is why a call failed: the label of the metric, and what the log tells apart.
type kind string

const (
	kindNone     kind = ""
	kindTimeout  kind = "timeout"  // no answer in time
	kindCanceled kind = "canceled" // the caller's context ended
	kindClosed   kind = "closed"   // this Store is
	kindNetwork  kind = "network"  // no connection, or it broke
	kindAuth     kind = "auth"     // user, password or permission
	kindLoading  kind = "loading"  // starting, or busy with a script
	kindReadOnly kind = "readonly" // a replica, or one whose disk fails
	kindFull     kind = "full"     // out of memory
	kindCluster  kind = "cluster"  // slots are moving or not served
	kindRefused  kind = "refused"  // any other error of Redis
	kindSealed   kind = "sealed"   // ErrSealed
)

// errSilent: Redis did not answer within Config.Timeout.
var errSilent = errors.New("no answer in time")

// errClosed: Close was called.
var errClosed = errors.New("closed")

// prefixes are the error codes of Redis (first word of an error).
var prefixes = map[string]kind{
	"NOAUTH": kindAuth, "WRONGPASS": kindAuth, "NOPERM": kindAuth, "DENIED": kindAuth,
	"LOADING": kindLoading, "BUSY": kindLoading,
	"READONLY": kindReadOnly, "MISCONF": kindReadOnly, "NOREPLICAS": kindReadOnly, "MASTERDOWN": kindReadOnly,
	"OOM": kindFull, "CLUSTERDOWN": kindCluster, "MOVED": kindCluster, "ASK": kindCluster, "TRYAGAIN": kindCluster, "CROSSSLOT": kindCluster,
}

// kindOf tells why a call failed; kindNone for nil and for answers that are none
// of the store's failures, as ErrNotFound.
func kindOf(err error) kind {
	var redisErr *rueidis.RedisError
	var netErr net.Error
	switch {
	case err == nil, errors.Is(err, session.ErrNotFound), errors.Is(err, session.ErrExists):
		return kindNone
	case errors.Is(err, ErrSealed):
		return kindSealed
	case errors.Is(err, errClosed):
		return kindClosed
	case errors.As(err, &redisErr):
		code, _, _ := strings.Cut(redisErr.Error(), " ")
		if k, ok := prefixes[code]; ok {
			return k
		}
		if strings.Contains(redisErr.Error(), "AUTH") || strings.Contains(redisErr.Error(), "password") {
			return kindAuth
		}
		return kindRefused
	case errors.Is(err, context.Canceled):
		return kindCanceled
	case errors.Is(err, errSilent), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return kindTimeout
	case errors.As(err, &netErr) && netErr.Timeout():
		return kindTimeout
	}
	return kindNetwork
}

// unavailable wraps why Redis could not tell. The text holds no password: servers
// repeat the words of commands that they do not know, AUTH among them.
func (s *Store) unavailable(err error) error {
	return fmt.Errorf("%w: redis: %w", session.ErrUnavailable, s.scrub(err))
}

func (s *Store) scrub(err error) error {
	if p := s.target.password; p != "" && strings.Contains(err.Error(), p) {
		return errors.New(strings.ReplaceAll(err.Error(), p, "***"))
	}
	return err
}

// text returns the first line of err, for a log.
func (s *Store) text(err error) string {
	line, _, _ := strings.Cut(s.scrub(err).Error(), "\n")
	return line
}

// ended returns why ctx did: errSilent where it was bounded by the Store, else
// what the caller's own says.
func ended(ctx context.Context) error {
	if context.Cause(ctx) == errSilent {
		return errSilent
	}
	return ctx.Err()
}
