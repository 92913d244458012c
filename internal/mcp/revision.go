package mcp

import "slices"

// Revision is a protocol version as it is written on the wire: a date,
// "YYYY-MM-DD", so that the order of strings is the order in time. A value from
// a peer may be any string; Known tells whether it is one of the five.
type Revision string

// The revisions of the specification, oldest first.
const (
	R20241105 Revision = "2024-11-05" // first; HTTP+SSE transport
	R20250326 Revision = "2025-03-26" // Streamable HTTP, batches
	R20250618 Revision = "2025-06-18" // no batches, version header, elicitation
	R20251125 Revision = "2025-11-25" // priming events, tasks (experimental)
	R20260728 Revision = "2026-07-28" // per-request era: no handshake, no sessions
)

// NewestHandshake is the newest revision that an InitializeResult may name;
// 2026-07-28 is never negotiated by initialize (2026-07-28, basic/versioning).
const NewestHandshake = R20251125

// AssumedRevision is the revision of a Streamable HTTP request whose version
// header is absent and whose session does not tell (2025-06-18,
// basic/transports, "Protocol Version Header").
const AssumedRevision = R20250326

// Known reports whether r is one of the five revisions.
func (r Revision) Known() bool {
	return r.Handshake() || r == R20260728
}

// Handshake reports whether r is one of the four revisions that start with
// initialize.
func (r Revision) Handshake() bool {
	switch r {
	case R20241105, R20250326, R20250618, R20251125:
		return true
	}
	return false
}

// AtLeast reports whether r is o or later, by date. What is not shaped like a
// date, the empty revision included, is at least nothing.
func (r Revision) AtLeast(o Revision) bool {
	return dateShaped(string(r)) && r >= o
}

// Handshakes returns the revisions of the handshake era, newest first, in a
// slice that is the caller's.
func Handshakes() []Revision {
	return []Revision{R20251125, R20250618, R20250326, R20241105}
}

// LooksModern reports whether version, as a peer wrote it, belongs to the
// per-request era: shaped like a date and not before 2026-07-28. It may still be
// a version that nobody here speaks, which is answered by CodeUnsupportedVersion
// and not by a handshake.
func LooksModern(version string) bool {
	return Revision(version).AtLeast(R20260728)
}

// dateShaped reports whether s is four digits, two digits and two digits with
// hyphens between. It does not look at the calendar: "2026-13-40" compares as
// well as any other.
func dateShaped(s string) bool {
	if len(s) != len("2026-07-28") {
		return false
	}
	for i := range len(s) {
		if i == 4 || i == 7 {
			if s[i] != '-' {
				return false
			}
			continue
		}
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// SupportedVersions is the JSON array of the revisions that clients may speak,
// newest first.
var SupportedVersions = func() string {
	list := `["` + string(R20260728) + `"`
	for _, r := range Handshakes() {
		list += `,"` + string(r) + `"`
	}
	return list + "]"
}()

// IsLogLevel reports whether level is one of the eight of RFC 5424 (all
// revisions, server/utilities/logging).
func IsLogLevel(level string) bool { return slices.Contains(LogLevels, level) }

// LogLevels are the levels of log messages, the least severe first.
var LogLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
