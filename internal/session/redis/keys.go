package redis

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// names are the two keys of a session, see the package comment.
type names struct {
	record, seen string
}

// namesOf returns the keys of k. No two sessions share one: the server's length
// stands before it, so that name and id cannot meet in another way.
func namesOf(prefix string, k session.Key) names {
	var buf [128]byte
	framed := binary.AppendUvarint(buf[:0], uint64(len(k.Server)))
	framed = append(append(framed, k.Server...), k.ID...)
	sum := sha256.Sum256(framed)
	hash := base64.RawURLEncoding.EncodeToString(sum[:])
	return names{
		record: prefix + ":session:{" + hash + "}",
		seen:   prefix + ":seen:{" + hash + "}",
	}
}

// formatSeen returns the time part of a seen key's value: "SECONDS NANOSECONDS",
// exact for each time.Time.
func formatSeen(t time.Time) string {
	return strconv.FormatInt(t.Unix(), 10) + " " + strconv.Itoa(t.Nanosecond())
}

// parseSeen reads the value of a seen key: "IDLE_MS SECONDS NANOSECONDS".
func parseSeen(s string) (idle time.Duration, seen time.Time, err error) {
	first, rest, _ := strings.Cut(s, " ")
	second, third, _ := strings.Cut(rest, " ")
	ms, err1 := strconv.ParseInt(first, 10, 64)
	sec, err2 := strconv.ParseInt(second, 10, 64)
	nsec, err3 := strconv.ParseInt(third, 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil || ms <= 0 || nsec < 0 || nsec >= 1e9 {
		return 0, time.Time{}, fmt.Errorf("%w: the time of the last request is malformed", ErrSealed)
	}
	return time.Duration(ms) * time.Millisecond, time.Unix(sec, nsec), nil
}

// millis returns d for Redis: in milliseconds, rounded up.
func millis(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}
