package audit

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Entry is one call, when it is over. Empty strings are left out of the line.
type Entry struct {
	Time      time.Time     // of its end
	Principal string        // as auth.Principal.String gives it
	Server    string        // name
	Session   string        // short hash
	Method    string        // as the client wrote it; at most MaxText bytes are kept
	Tool      string        // or prompt; at most MaxText bytes are kept
	Outcome   string        // see the constants, and Refused
	Duration  time.Duration // from arrival to answer
	Bytes     int           // of the request
}

// How a call can end.
const (
	OK        = "ok"
	Error     = "error" // answered with an error, by the server or for it
	Cancelled = "cancelled"
	Timeout   = "timeout"
)

// Refused is the outcome of what never reached the server. The reason is one of
// error.data.reason.
func Refused(reason string) string { return "refused:" + reason }

// Event is something that happened to a session.
type Event struct {
	Time      time.Time
	What      string // "opened", "ended" or "refused"
	Principal string // as auth.Principal.String gives it
	Server    string // name
	Session   string // short hash
	Transport string // "streamable" or "sse"
	Reason    string // why it ended or was refused
}

// MaxText bounds what is kept of a text that a client chose, in bytes.
const MaxText = 128

// timeLayout is RFC 3339 in UTC with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

// append adds the line for e.
func (e *Entry) append(dst []byte) []byte {
	dst = appendTime(dst, e.Time)
	dst = append(dst, `,"event":"call"`...)
	dst = appendText(dst, `,"principal":`, e.Principal)
	dst = appendText(dst, `,"server":`, e.Server)
	dst = appendText(dst, `,"session":`, e.Session)
	dst = appendText(dst, `,"method":`, cut(e.Method))
	dst = appendText(dst, `,"tool":`, cut(e.Tool))
	dst = appendText(dst, `,"outcome":`, e.Outcome)
	dst = append(dst, `,"ms":`...)
	dst = appendMillis(dst, e.Duration)
	dst = append(dst, `,"bytes":`...)
	dst = strconv.AppendInt(dst, int64(e.Bytes), 10)
	return append(dst, "}\n"...)
}

// append adds the line for e.
func (e *Event) append(dst []byte) []byte {
	dst = appendTime(dst, e.Time)
	dst = appendText(dst, `,"event":`, e.What)
	dst = appendText(dst, `,"principal":`, e.Principal)
	dst = appendText(dst, `,"server":`, e.Server)
	dst = appendText(dst, `,"session":`, e.Session)
	dst = appendText(dst, `,"transport":`, e.Transport)
	dst = appendText(dst, `,"reason":`, cut(e.Reason))
	return append(dst, "}\n"...)
}

// appendLost adds the line that stands where n others are missing.
func appendLost(dst []byte, at time.Time, n uint64) []byte {
	dst = appendTime(dst, at)
	dst = append(dst, `,"lost":`...)
	dst = strconv.AppendUint(dst, n, 10)
	return append(dst, "}\n"...)
}

func appendTime(dst []byte, t time.Time) []byte {
	dst = append(dst, `{"time":"`...)
	return append(t.UTC().AppendFormat(dst, timeLayout), '"')
}

func appendText(dst []byte, member, text string) []byte {
	if text == "" {
		return dst
	}
	return wire.AppendQuote(append(dst, member...), text)
}

// appendMillis adds milliseconds with three decimals.
func appendMillis(dst []byte, d time.Duration) []byte {
	us := max(0, d.Microseconds())
	dst = append(strconv.AppendInt(dst, us/1000, 10), '.')
	return append(dst, byte('0'+us/100%10), byte('0'+us/10%10), byte('0'+us%10))
}

// cut keeps whole characters within MaxText bytes.
func cut(s string) string {
	if len(s) <= MaxText {
		return s
	}
	n := MaxText
	for n > MaxText-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
