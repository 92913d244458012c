package process

import (
	"bytes"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// noise watches lines that are no JSON-RPC message: it logs a few of them and
// guesses what is wrong with a server that never gets ready.
type noise struct {
	lines   int
	braces  int  // lines of pretty-printed JSON
	lsp     bool // a Content-Length header
	window  time.Time
	logged  int
	skipped int
}

// noisePerMinute bounds the log lines that one process can cause.
const noisePerMinute = 10

func (n *noise) add(line []byte, log *slog.Logger) {
	n.lines++
	trimmed := bytes.TrimSpace(line)
	if len(trimmed) >= 15 && bytes.EqualFold(trimmed[:15], []byte("Content-Length:")) {
		n.lsp = true
	}
	if s := string(trimmed); s == "{" || s == "}" || s == "}," {
		n.braces++
	}
	now := time.Now()
	if now.Sub(n.window) >= time.Minute {
		if n.skipped > 0 {
			log.Warn("more lines on the server's stdout that are no JSON-RPC messages", "lines", n.skipped)
		}
		n.window, n.logged, n.skipped = now, 0, 0
	}
	if n.logged == noisePerMinute {
		n.skipped++
		return
	}
	n.logged++
	log.Warn("line on the server's stdout that is no JSON-RPC message; skipped",
		"line", strings.ToValidUTF8(cut(string(line[:min(len(line), 256)]), 200), "\uFFFD"), "bytes", len(line))
}

// hint says in one clause what the output of a server that never answered
// looks like; empty where nothing is known.
func (n *noise) hint(p Pipe) string {
	partial := ""
	if p != nil {
		partial = strings.TrimSpace(p.Partial())
	}
	switch {
	case n.lsp || strings.HasPrefix(partial, "Content-Length:"):
		return "it writes Content-Length headers, which is the framing of LSP; MCP over stdio is one JSON message a line"
	case n.braces >= 2:
		return "it writes JSON over several lines; MCP over stdio is one JSON message a line"
	case partial != "" && utf8.ValidString(partial):
		return "it wrote without a line end: " + lastBytes(partial, 512)
	}
	return ""
}

var errCallTimeout = &upstream.Error{Code: -32000, Reason: "timeout", Err: upstream.ErrTimeout,
	Message: "the server gave neither an answer nor progress in time (--call-timeout)"}

var errCallLimit = &upstream.Error{Code: -32000, Reason: "timeout", Err: upstream.ErrTimeout,
	Message: "the call ran longer than one call may (--call-limit)"}
