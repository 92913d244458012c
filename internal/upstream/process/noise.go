package process

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// noise watches lines that are no JSON-RPC message: it logs a few of them and
// guesses what is wrong with a server that never gets ready.
type noise struct {
	mu      sync.Mutex
	braces  int  // lines of pretty-printed JSON
	lsp     bool // a Content-Length header
	window  time.Time
	logged  int
	skipped int
}

// noisePerMinute bounds the log lines that one process can cause.
const noisePerMinute = 10

func (n *noise) add(line []byte, log *slog.Logger) {
	trimmed := bytes.TrimSpace(line)
	n.mu.Lock()
	if len(trimmed) >= len(lspHeader) && strings.EqualFold(string(trimmed[:len(lspHeader)]), lspHeader) {
		n.lsp = true
	}
	if s := string(trimmed); s == "{" || s == "}" || s == "}," {
		n.braces++
	}
	n.mu.Unlock()
	n.warn(log, "line on the server's stdout that is no JSON-RPC message; skipped", line)
}

const lspHeader = "Content-Length:"

// warn logs what is wrong with a line, unless the process has caused too many
// log lines already.
func (n *noise) warn(log *slog.Logger, what string, line []byte) {
	n.mu.Lock()
	more, quiet := n.countLocked(time.Now())
	n.mu.Unlock()
	if more > 0 {
		log.Warn("more bad lines on the server's stdout", "count", more)
	}
	if quiet {
		return
	}
	if looksLikeMessage(line) && !log.Enabled(context.Background(), slog.LevelDebug) {
		log.Warn(what, "bytes", len(line), "hint", "the line begins like a message, so it is shown at --log-level debug only")
		return
	}
	log.Warn(what, "line", strings.ToValidUTF8(cut(string(line[:min(len(line), 256)]), 200), "\uFFFD"), "bytes", len(line))
}

// looksLikeMessage: what may be contents of a call does not stand in the log
// below debug, however broken it is.
func looksLikeMessage(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 1 && (line[0] == '{' || line[0] == '[' && line[1] == '{')
}

// countLocked tells whether one more line must go unlogged, and at the begin
// of a minute how many did in the last.
func (n *noise) countLocked(now time.Time) (skipped int, quiet bool) {
	if now.Sub(n.window) >= time.Minute {
		skipped = n.skipped
		n.window, n.logged, n.skipped = now, 0, 0
	}
	if n.logged == noisePerMinute {
		n.skipped++
		return skipped, true
	}
	n.logged++
	return skipped, false
}

// hint says in one clause what the output of a server that never answered
// looks like; empty where nothing is known.
func (n *noise) hint(p Pipe) string {
	partial := ""
	if p != nil {
		partial = strings.TrimSpace(p.Partial())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.lsp || strings.HasPrefix(partial, lspHeader):
		return "it writes Content-Length headers, which is the framing of LSP; MCP over stdio is one JSON message a line"
	case n.braces >= 2:
		return "it writes JSON over several lines; MCP over stdio is one JSON message a line"
	case partial != "" && utf8.ValidString(partial):
		return "it wrote without a line end: " + lastBytes(partial, 512)
	}
	return ""
}
