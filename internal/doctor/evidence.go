package doctor

import (
	"bytes"
	"errors"
	"regexp"
	"strings"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// evidence is what was seen of one process. Its texts went through the veil.
type evidence struct {
	responses int // also under other ids
	oversize  int64

	lines       int      // that are no messages
	first       []string // of them
	lsp, utf16  bool
	braces      int    // lines that begin or end JSON over several lines
	spread      bool   // and one that tells that it is a message
	broken, why string // a line that was meant as a message, and what is wrong with it
	twoOnLine   bool   // it is two messages
	pyDict      bool   // it is a dict as Python prints it

	echo               bool   // a request came back
	strayID, strayText string // of the first response under an id that was not asked

	ended   bool // by itself
	late    bool // a response came only after its stdin was closed
	exit    child.ExitInfo
	partial string // stdout without a line end
	stderr  []string
	answer  string // a response that stands on stderr
}

var (
	pyDict        = regexp.MustCompile(`^\{\s*'`)
	contentLength = regexp.MustCompile(`(?i)^content-length:\s*\d+`)
	// messageMark stands in whatever is meant as a message.
	messageMark = regexp.MustCompile(`["']?jsonrpc["']?\s*:`)
)

// noise takes a line that is no message. why is nil for one that is too long.
func (e *evidence) noise(v *veil, line []byte, why error) {
	e.lines++
	line = line[:min(len(line), longestText)]
	text := bytes.TrimSpace(line)
	switch {
	case wide(text):
		e.utf16 = true
		text = bytes.ReplaceAll(text, []byte{0}, nil)
	case contentLength.Match(text):
		e.lsp = true
	case e.broken == "" && why != nil && len(text) > 0 && (text[0] == '{' || text[0] == '[') && messageMark.Match(text):
		e.broken, e.why = v.text(string(text), maxQuote), faultOf(why)
		e.twoOnLine, e.pyDict = twoValues(text), pyDict.Match(text)
	}
	switch strings.TrimRight(string(text), ",") {
	case "{", "}", "[", "]":
		e.braces++
	case "":
	default:
		e.spread = e.spread || text[0] == '"' && messageMark.Match(text)
	}
	if len(e.first) < maxNoise {
		e.first = append(e.first, v.text(string(text), maxQuote))
	}
}

// wide tells that text is UTF-16, or the rest of it behind a line end.
func wide(text []byte) bool {
	if bytes.HasPrefix(text, []byte{0xFF, 0xFE}) || bytes.HasPrefix(text, []byte{0xFE, 0xFF}) {
		return true
	}
	return len(text) >= 8 && bytes.Count(text, []byte{0})*3 > len(text)
}

func faultOf(err error) string {
	var bad *wire.Error
	if !errors.As(err, &bad) {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(bad.Msg, "Parse error: "), "Invalid Request: ")
}

// twoValues tells that a JSON value begins where another one ends.
func twoValues(text []byte) bool {
	i := bytes.Index(text, []byte("}{"))
	if i < 0 {
		return false
	}
	_, err := wire.Parse(text[:i+1])
	return err == nil
}

// stray takes a response under an id that nobody waits for.
func (e *evidence) stray(v *veil, id string, msg *wire.Message) {
	if e.strayText != "" {
		return
	}
	if e.strayID = v.text(id, 40); id == "" {
		e.strayID = "null"
	}
	e.strayText = v.text(string(msg.Raw), maxQuote)
	if msg.Error.Present() {
		e.strayText = v.text(readError(msg).Message, maxQuote)
	}
}

// finish takes what is known only at the end.
func (e *evidence) finish(v *veil, partial, stderr string) {
	e.partial = v.text(partial, longestText)
	if contentLength.MatchString(e.partial) {
		e.lsp = true
	}
	if wide([]byte(partial)) {
		e.utf16 = true
	}
	for line := range strings.SplitSeq(stderr, "\n") {
		if msg, err := wire.Parse([]byte(strings.TrimSpace(line))); err == nil && msg.Kind == wire.Response && e.answer == "" {
			e.answer = v.text(line, maxQuote)
		}
		if text := v.text(line, longestText); text != "" {
			e.stderr = append(e.stderr, text)
		}
	}
}

// written is all that it wrote in words, stderr first.
func (e *evidence) written() []string {
	all := append([]string{}, e.stderr...)
	all = append(all, e.first...)
	if e.partial != "" {
		all = append(all, e.partial)
	}
	return all
}

// tail are the last lines of stderr, each cut.
func (e *evidence) tail() []string {
	lines := e.stderr[max(0, len(e.stderr)-maxStderr):]
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		if runes := []rune(line); len(runes) > maxQuote {
			line = string(runes[:maxQuote]) + "..."
		}
		out = append(out, line)
	}
	return out
}
