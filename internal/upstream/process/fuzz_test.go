package process

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// FuzzWireID: any legal id comes back from the wire id, also when a server
// spells the string in other escapes; and no two ids are taken for one another.
func FuzzWireID(f *testing.F) {
	for _, id := range append(modelIDs, `"\ud800"`, `"\ud83d\ude00"`, `"|s:"`, `"\\|n:1"`, `"\u007c"`, `18446744073709551616`) {
		f.Add([]byte(id), uint64(1), uint64(0x5555555555555555), []byte(`"x"`))
	}
	f.Fuzz(func(t *testing.T, id []byte, n, escapes uint64, echo []byte) {
		parseWireID(echo) // whatever a server sends
		if !wire.ValidIDToken(id) {
			return
		}
		n &= 1<<62 - 1
		const part = "0123456789abc-_DEFGHIJ" // always the same, for the fuzzer's sake
		tok := appendWireID(nil, part, n, id)
		for _, echoed := range [][]byte{tok, respell(tok, escapes), respell(tok, ^uint64(0))} {
			got, ok := parseWireID(echoed)
			if !ok || string(got.conn) != part || got.n != n || !got.is(id) {
				t.Fatalf("%s: %s is conn %s, call %d, %c %s; the right id: %v", id, echoed, got.conn, got.n, got.kind, got.inner, got.is(id))
			}
			if bytes.Equal(echoed, tok) && !bytes.Equal(got.original(), id) {
				t.Fatalf("%s came back as %s", id, got.original())
			}
			other := `"` + string(id) + `"`
			if id[0] == '"' {
				other = string(id[1 : len(id)-1])
			}
			if wire.ValidIDToken([]byte(other)) && got.is([]byte(other)) {
				t.Fatalf("%s is taken for %s", id, other)
			}
		}
	})
}

// respell writes characters of a string token as escapes, those whose bit is
// set. Surrogates that stand alone stay as they are.
func respell(tok []byte, bits uint64) []byte {
	out := []byte{'"'}
	for i, in := 0, tok[1:len(tok)-1]; len(in) > 0; i++ {
		size := 1
		if _, size = utf8.DecodeRune(in); in[0] == '\\' {
			size = 2
			if in[1] == 'u' {
				size = 6
			}
		}
		c := in[:size]
		in = in[size:]
		switch r, _ := utf8.DecodeRune(c); {
		case bits>>(i%64)&1 == 0 || c[0] == '\\':
			out = append(out, c...)
		case r > 0xFFFF:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04X\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return append(out, '"')
}

// fuzzWorld is a process with up to two sessions that have calls open.
type fuzzWorld struct {
	*world
	t       *testing.T
	clients []*client
	calls   []*checkingSink
	wire    []string         // wire ids of the open calls, without quotes
	got     map[int][]string // by client: what its sinks took
	parts   map[int]string   // by client: the first part of its ROUTEs
}

func newFuzzWorld(t *testing.T, shared bool) *fuzzWorld {
	w := &fuzzWorld{world: newWorld(t, shared), t: t, got: make(map[int][]string), parts: make(map[int]string)}
	for i := range map[bool]int{true: 2, false: 1}[shared] {
		c := w.open()
		note := func(_, what string, b []byte) {
			w.mu.Lock() // at the end, Close and Exit both end calls
			defer w.mu.Unlock()
			w.got[i] = append(w.got[i], what+" "+string(b))
		}
		c.events.note, c.events.reads = note, true
		w.clients = append(w.clients, c)
		w.parts[i] = c.conn.(*conn).part
		if i == 0 {
			w.proc().handler.Line(wire.AppendResult(nil, []byte(idOf(w.proc().got()[0])), []byte(initResult)))
			_ = c.send(initializedLine)
			w.proc().got()
		}
		for _, id := range []string{`1`, `"é\u00e9"`} {
			params := `{"_meta":{"progressToken":1}}`
			if !shared {
				params = `{"_meta":{"progressToken":1},"task":{}}`
			}
			_, sink := c.call(id, "m", params)
			sink.note = note
			w.calls = append(w.calls, sink)
			in := w.proc().got()
			w.wire = append(w.wire, strings.Trim(idOf(in[len(in)-1]), `"`))
		}
	}
	return w
}

// FuzzServerLines: whatever lines a server writes, nothing breaks, every call
// ends once, and no session gets what does not name it: each thing that a
// session takes comes from a line that has its ROUTE, but for list changes and,
// with a process of its own, what names no call. $0 to $3 in the lines stand
// for the wire ids of the open calls, and %0 to %3 for their ROUTEs.
func FuzzServerLines(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":"$0","result":{}}` + "\n" + `{"jsonrpc":"2.0","id":"$0","result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"%1","progress":1}}` + "\n" + `{"jsonrpc":"2.0","id":"$1","result":{"task":{"taskId":"t"}}}`,
		`{"jsonrpc":"2.0","id":"$3","error":{"code":1,"message":"$0"}}` + "\n" + `[{"jsonrpc":"2.0","id":"$2","result":1}]`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"roots/list"}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"$0"}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"r://x"}}` + "\n\xff\n" + `{oops`,
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, lines []byte, shared bool) {
		w := newFuzzWorld(t, shared)
		for line := range bytes.SplitSeq(lines, []byte("\n")) {
			w.line(fuzzName.ReplaceAllStringFunc(string(line), w.expand))
		}
		h := w.clients[0].hub()
		h.mu.Lock()
		h.checkLocked(t)
		h.mu.Unlock()
		w.Close()
		<-w.proc().done
		for _, s := range w.calls {
			if ends, _, _ := s.state(); ends != 1 {
				t.Errorf("%s: %d ends", s.name, ends)
			}
		}
		w.checkEmpty()
	})
}

var fuzzName = regexp.MustCompile(`[$%][0-3]`)

func (w *fuzzWorld) expand(name string) string {
	i, _ := strconv.Atoi(name[1:])
	if i >= len(w.wire) {
		return name
	}
	if name[0] == '%' {
		route, _, _ := strings.Cut(w.wire[i], "|")
		return route
	}
	return w.wire[i]
}

func (w *fuzzWorld) line(line string) {
	if line == "" {
		return
	}
	w.proc().handler.Line([]byte(line))
	for i, got := range w.got {
		for _, g := range got {
			what, data, _ := strings.Cut(g, " ")
			named := strings.Contains(unescape(line), w.parts[i])
			switch {
			case named, !w.cfg.Shared && what != "reply" && what != "own":
			case what == "loose" && isListChanged(data):
			default:
				w.t.Fatalf("session %d got %s because of %s", i, g, line)
			}
			for j, part := range w.parts {
				if id, _ := wire.Lookup([]byte(data), "id"); j != i && strings.Contains(string(id.Of([]byte(data))), part) {
					w.t.Fatalf("session %d got an id of session %d: %s", i, j, g)
				}
			}
		}
		w.got[i] = nil
	}
}

func isListChanged(data string) bool {
	msg, err := wire.Parse([]byte(data))
	return err == nil && msg.Kind == wire.Notification && !msg.Params.Present() && mcp.MethodOf(msg.MethodName()).IsListChanged()
}

var escape = regexp.MustCompile(`\\u[0-9a-fA-F]{4}`)

// unescape makes what a line may have spelled in escapes visible.
func unescape(line string) string {
	return escape.ReplaceAllStringFunc(line, func(e string) string {
		r, _ := strconv.ParseUint(e[2:], 16, 32)
		return string(rune(r))
	})
}
