package audit

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestLines(t *testing.T) {
	at := time.Date(2026, 1, 2, 4, 4, 5, 678_999_999, time.FixedZone("", 3600))
	for want, line := range map[string][]byte{
		`{"time":"2026-01-02T03:04:05.678Z","event":"call","principal":"key ci","server":"s","session":"01234567","method":"tools/call","tool":"t","outcome":"ok","ms":1.234,"bytes":99}`: (&Entry{Time: at, Principal: "key ci", Server: "s", Session: "01234567", Method: "tools/call", Tool: "t", Outcome: OK, Duration: 1234567, Bytes: 99}).append(nil),
		`{"time":"2026-01-02T03:04:05.678Z","event":"call","principal":"anonymous","server":"s","method":"ping","outcome":"refused:policy","ms":61000.007,"bytes":0}`:                     (&Entry{Time: at, Principal: "anonymous", Server: "s", Method: "ping", Outcome: Refused("policy"), Duration: 61*time.Second + 7*time.Microsecond}).append(nil),
		`{"time":"2026-01-02T03:04:05.678Z","event":"ended","principal":"anonymous","server":"s","session":"01234567","transport":"sse","reason":"the client\n left"}`:                    (&Event{Time: at, What: "ended", Principal: "anonymous", Server: "s", Session: "01234567", Transport: "sse", Reason: "the client\n left"}).append(nil),
		`{"time":"2026-01-02T03:04:05.678Z","lost":7}`: appendLost(nil, at, 7),
		`{"time":"2026-01-02T03:04:05.678Z","event":"call","tool":"` + strings.Repeat("x", 126) + `","outcome":"ok","ms":0.000,"bytes":0}`: (&Entry{Time: at, Tool: strings.Repeat("x", 126) + "€uro", Outcome: OK, Duration: -1}).append(nil),
	} {
		if string(line) != want+"\n" {
			t.Errorf("got  %swant %s", line, want)
		}
	}
}

// FuzzLine: whatever a client names a method or a tool, the line is one line, one JSON
// object, and not long.
func FuzzLine(f *testing.F) {
	f.Add("tools/call", "a tool")
	f.Add("\n{\"lost\":1}\n", "\x00\xff\u2028\"\\")
	f.Add(strings.Repeat("€", 100), strings.Repeat("\x01", 200))
	f.Fuzz(func(t *testing.T, method, tool string) {
		line := (&Entry{Time: time.Now(), Method: method, Tool: tool, Outcome: Error}).append(nil)
		body, end := line[:len(line)-1], line[len(line)-1]
		var m struct{ Event, Method, Tool, Outcome string }
		if end != '\n' || strings.ContainsAny(string(body), "\n\r") || json.Unmarshal(body, &m) != nil || len(line) > 200+2*6*MaxText {
			t.Fatalf("line %q", line)
		}
		if utf8.ValidString(tool) && len(tool) <= MaxText && m.Tool != tool || m.Event != "call" || m.Outcome != Error {
			t.Errorf("%q came out as %+v", tool, m)
		}
	})
}

func BenchmarkCall(b *testing.B) {
	l, err := Open("-", Options{Stderr: io.Discard})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.ReportAllocs()
	for b.Loop() {
		l.Call(call)
	}
}
