package process

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/wire"
)

func TestOversizeLine(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		c := w.ready(handshake)
		_, head := c.call("1", "m", "{}")
		_, tail := c.call(`"two"`, "m", "{}")
		_, none := c.call("3", "m", "{}")
		in := w.proc().got()
		p := w.proc()
		big := strings.Repeat("x", 4096)
		p.do(func() {
			p.handler.Oversize([]byte(`{"jsonrpc":"2.0","id":`+idOf(in[0])+`,"result":"`+big), []byte(big+`"}`), 99<<20)
		})
		p.do(func() {
			p.handler.Oversize([]byte(`{"jsonrpc":"2.0","result":"`+big), []byte(big+`","id":`+idOf(in[1])+`}`), 99<<20)
		})
		p.do(func() { p.handler.Oversize([]byte(big), []byte(big), 99<<20) })
		p.do(func() { p.handler.Oversize([]byte(`{"id":1,"result":"`+big), []byte(big+`"}`), 99<<20) })
		synctest.Wait()
		want := "oversize: the server's answer has 103809024 bytes, more than the limit of 67108864 (--max-message)"
		demand(t, head, want)
		demand(t, tail, want)
		demand(t, none, "open")
		p.says(`{"jsonrpc":"2.0","id":` + idOf(in[2]) + `,"result":{}}`)
		synctest.Wait()
		demand(t, none, `"id":3`)
	})
}

// An answer to initialize above the limit is the end of the start.
func TestOversizeInitialize(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.starts(func(p *fakeProcess) error {
			p.react = func(p *fakeProcess, line string) {
				p.handler.Oversize([]byte(`{"jsonrpc":"2.0","id":`+idOf(line)+`,"result":"`), []byte(`"}`), 99<<20)
			}
			return nil
		})
		c := w.open()
		synctest.Wait()
		demand(t, c.init, "oversize")
	})
}

// logged counts lines at warning level and above.
type logged struct{ bytes.Buffer }

func (l *logged) warnings(text string) int {
	n := 0
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, "level=WARN") && strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (l *logged) use(c *Config) { c.Log = slog.New(slog.NewTextHandler(&l.Buffer, nil)) }

func TestNoiseAroundAnAnswer(t *testing.T) {
	var log logged
	inBubble(t, true, func(t *testing.T, w *world) {
		c := w.ready(handshake)
		_, call := c.call("1", "m", "{}")
		id := idOf(w.proc().got()[0])
		noise := []string{"✅ fetched 10 rows", "{oops", `{"jsonrpc":"2.0","id":1,"id":2,"result":1}`, `{"id":1,"result":"no version"}`,
			`{"jsonrpc":"2.0","id":` + id + `,"result":1}{"jsonrpc":"2.0","id":` + id + `,"result":2}`, "null", `"x"`, "1.5",
			`{"jsonrpc":"2.0","id":1.5,"result":{}}`, `{"jsonrpc":"2.0","id":2,"method":"m","result":{}}`}
		for i := range 10000 {
			w.proc().says(noise[i%len(noise)])
		}
		synctest.Wait()
		demand(t, call, "open")
		w.proc().says(`{"jsonrpc":"2.0","id":` + id + `,"result":"answer"}`)
		synctest.Wait()
		demand(t, call, "answer")
		if got := w.dropped(); len(got) != 1 || got[DropNoise] != 10000 {
			t.Errorf("dropped %v", got)
		}
		time.Sleep(time.Minute)
		w.proc().says("one more")
		synctest.Wait()
	}, log.use)
	if n := log.warnings("skipped"); n != noisePerMinute+1 {
		t.Errorf("%d lines of noise were logged", n)
	}
	if n := log.warnings("count=9990"); n != 1 {
		t.Errorf("the rest was counted %d times", n)
	}
}

func TestInvalidUTF8(t *testing.T) {
	var log logged
	inBubble(t, true, func(t *testing.T, w *world) {
		c := w.ready(handshake)
		_, bad := c.call("3", "m", "{}")
		_, good := c.call("4", "m", "{}")
		in := w.proc().got()
		for range 100 {
			w.proc().says(`{"jsonrpc":"2.0","method":"notifications/x` + "\xff" + `"}`)
		}
		w.proc().says(`{"jsonrpc":"2.0","id":` + idOf(in[0]) + `,"result":"` + "a\xff\xfeb\xe2\x82" + `\ud800"}`)
		w.proc().says(`{"jsonrpc":"2.0","id":` + idOf(in[1]) + `,"result":"é\ud800"}`)
		synctest.Wait()
		demand(t, bad, `{"jsonrpc":"2.0","id":3,"result":"a`+"\uFFFD"+`b`+"\uFFFD"+`\ud800"}`)
		demand(t, good, `{"jsonrpc":"2.0","id":4,"result":"é\ud800"}`)
	}, log.use)
	if n := log.warnings("invalid UTF-8"); n != noisePerMinute {
		t.Errorf("%d lines were logged", n)
	}
}

// A client's id may have 1 KiB. The echo has the ROUTE on top of that, and may
// be escaped to many times its length.
func TestLongIDs(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		c := w.ready(handshake)
		for _, id := range []string{
			`"` + strings.Repeat("x", wire.MaxIDLen) + `"`,
			`"` + strings.Repeat("é", wire.MaxIDLen/2) + `"`,
			strings.Repeat("9", wire.MaxIDLen),
		} {
			_, plain := c.call(id, "m", "{}")
			echo := idOf(w.proc().got()[0])
			w.proc().says(`{"jsonrpc":"2.0","result":{},"id":` + echo + `}`)
			_, escaped := c.call(id, "m", "{}")
			echo = idOf(w.proc().got()[0])
			w.proc().says(`{"jsonrpc":"2.0","id":"` + escapeAll(echo[1:len(echo)-1]) + `","result":{}}`)
			synctest.Wait()
			demand(t, plain, `{"jsonrpc":"2.0","result":{},"id":`+id+`}`)
			demand(t, escaped, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)
		}
		// Long ids of others hit nobody.
		w.proc().says(`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 2000) + `","result":{}}`)
		w.proc().says(`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 2000) + `","method":"ping"}`)
		synctest.Wait()
		if got := w.dropped(); got[DropForeignID] != 1 || got[DropNoise] != 1 || len(got) != 2 {
			t.Errorf("dropped %v", got)
		}
	})
}

// escapeAll spells the inside of a string token without escapes in escapes alone.
func escapeAll(s string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

// S18: the first drop or refusal of each method is a warning, later ones are
// not; all are counted.
func TestS18FirstDropOfEachMethodIsAWarning(t *testing.T) {
	var log logged
	inBubble(t, true, func(t *testing.T, w *world) {
		w.ready(handshake)
		for i := range 1000 {
			w.proc().says(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"secret"}}`)
			w.proc().says(`{"jsonrpc":"2.0","method":"notifications/x"}`)
			w.proc().says(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
			w.proc().says(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%d"}`, i))
		}
		synctest.Wait()
		if got := w.dropped(); got[DropUnattributable] != 3000 || got[DropRefusedRequest] != 1000 || len(got) != 2 {
			t.Errorf("dropped %v", got)
		}
	}, log.use)
	for _, method := range []string{"notifications/message", "notifications/x", "roots/list"} {
		if n := log.warnings("method=" + method + "\n"); n != 1 {
			t.Errorf("%d warnings of %s", n, method)
		}
	}
	if n := log.warnings(""); n > maxNamedDrops {
		t.Errorf("a server made %d warnings by inventing names", n)
	}
	if strings.Contains(log.String(), "secret") {
		t.Error("the log has what was dropped")
	}
}
