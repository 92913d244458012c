package redis

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/session"
)

// A record is a list of fields: number and length as uvarints, then the bytes.
// Empty fields are left out. A number that this version does not know is kept and
// written back, so that replicas of two versions can share a record.
//
// Server and id are not in it: they are what it is found, and sealed, by. LastSeen
// stands in a key of its own.
const (
	fieldPrincipal        = 1
	fieldTransport        = 2
	fieldRevision         = 3
	fieldCreated          = 4 // seconds as varint, nanoseconds as uvarint
	fieldInitialize       = 5
	fieldHome             = 6
	fieldUpstream         = 7
	fieldUpstreamSession  = 8
	fieldUpstreamRevision = 9
	fieldSubscription     = 10 // once for each
	fieldLogLevel         = 11
	fieldVersion          = 12 // uvarint
	fieldListener         = 13
	fieldUsed             = 14 // 1
	fieldsKnown           = 14
)

// appendRecord appends r, and the fields of it that only newer versions know.
func appendRecord(b []byte, r session.Record, unknown []byte) []byte {
	text := func(number uint64, s string) {
		if s != "" {
			b = append(appendHead(b, number, len(s)), s...)
		}
	}
	text(fieldPrincipal, r.Principal)
	text(fieldTransport, string(r.Transport))
	text(fieldRevision, string(r.Revision))
	created := binary.AppendVarint(nil, r.Created.Unix())
	created = binary.AppendUvarint(created, uint64(r.Created.Nanosecond()))
	b = append(appendHead(b, fieldCreated, len(created)), created...)
	if len(r.Initialize) > 0 {
		b = append(appendHead(b, fieldInitialize, len(r.Initialize)), r.Initialize...)
	}
	text(fieldHome, r.Home)
	text(fieldUpstream, r.Upstream)
	text(fieldUpstreamSession, r.UpstreamSession)
	text(fieldUpstreamRevision, string(r.UpstreamRevision))
	for _, uri := range r.Subscriptions { // "" is a subscription, too
		b = append(appendHead(b, fieldSubscription, len(uri)), uri...)
	}
	text(fieldLogLevel, r.LogLevel)
	text(fieldListener, r.Listener)
	if r.Used {
		text(fieldUsed, "\x01")
	}
	version := binary.AppendUvarint(nil, r.Version)
	b = append(appendHead(b, fieldVersion, len(version)), version...)
	return append(b, unknown...)
}

func appendHead(b []byte, number uint64, size int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, number), uint64(size))
}

// parseRecord reads what appendRecord wrote. Both results share no memory with b.
func parseRecord(b []byte) (r session.Record, unknown []byte, err error) {
	var seen [fieldsKnown + 1]bool
	for len(b) > 0 {
		number, value, rest, err := parseField(b)
		if err != nil {
			return session.Record{}, nil, err
		}
		if number > fieldsKnown {
			unknown = append(unknown, b[:len(b)-len(rest)]...)
			b = rest
			continue
		}
		b = rest
		if seen[number] && number != fieldSubscription {
			return session.Record{}, nil, fmt.Errorf("%w: field %d is there twice", ErrSealed, number)
		}
		seen[number] = true
		if !setField(&r, number, value) {
			return session.Record{}, nil, fmt.Errorf("%w: field %d is malformed", ErrSealed, number)
		}
	}
	if !seen[fieldCreated] || !seen[fieldVersion] {
		return session.Record{}, nil, fmt.Errorf("%w: a field is missing", ErrSealed)
	}
	return r, unknown, nil
}

func parseField(b []byte) (number uint64, value, rest []byte, err error) {
	number, n := binary.Uvarint(b)
	if n <= 0 || number == 0 {
		return 0, nil, nil, fmt.Errorf("%w: field number is malformed", ErrSealed)
	}
	size, m := binary.Uvarint(b[n:])
	if m <= 0 || size > uint64(len(b)-n-m) {
		return 0, nil, nil, fmt.Errorf("%w: field %d is cut short", ErrSealed, number)
	}
	b = b[n+m:]
	return number, b[:size], b[size:], nil
}

// setField puts a field's value into r; false where it is malformed.
func setField(r *session.Record, number uint64, v []byte) bool {
	switch number {
	case fieldPrincipal:
		r.Principal = string(v)
	case fieldTransport:
		r.Transport = session.Transport(v)
	case fieldRevision:
		r.Revision = mcp.Revision(v)
	case fieldCreated:
		sec, n := binary.Varint(v)
		if n <= 0 {
			return false
		}
		nsec, m := binary.Uvarint(v[n:])
		if m <= 0 || n+m != len(v) || nsec >= 1e9 {
			return false
		}
		r.Created = time.Unix(sec, int64(nsec))
	case fieldInitialize:
		r.Initialize = slices.Clone(v)
	case fieldHome:
		r.Home = string(v)
	case fieldUpstream:
		r.Upstream = string(v)
	case fieldUpstreamSession:
		r.UpstreamSession = string(v)
	case fieldUpstreamRevision:
		r.UpstreamRevision = mcp.Revision(v)
	case fieldSubscription:
		r.Subscriptions = append(r.Subscriptions, string(v))
	case fieldLogLevel:
		r.LogLevel = string(v)
	case fieldListener:
		r.Listener = string(v)
	case fieldUsed:
		r.Used = true
		return string(v) == "\x01"
	case fieldVersion:
		version, n := binary.Uvarint(v)
		r.Version = version
		return n == len(v) && n > 0
	}
	return true
}
