package dialog

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

var update = flag.Bool("update", false, "write what happens into the transcripts, to be read")

// A transcript in testdata is a session, line by line. Lines with > are what
// client, server and test do; those with < are all that follows of it, in order:
//
//	> client MESSAGE           initialize, requests, notifications, answers
//	> server N MESSAGE         on the stream of the Nth request that reached the server
//	> server N ends TEXT       without a response
//	> wait DURATION
//	> calls deaf               nobody reads the streams of calls from now on; "calls hear"
//	> events deaf              nobody reads the session's own stream; "events hear"
//	> cancel ID                by upstream.Call.Cancel
//	> end                      of the session
//	< server N MESSAGE         the Nth request
//	< server N cancelled: TEXT
//	< initialize|call ID|events reply|own|loose|waiting MESSAGE
//	< initialize|call ID|events end CODE REASON: TEXT
//
// <a>, <b>, ... stand for the ids that Signalbox made, in the order of their first use.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, file) })
		})
	}
}

func play(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{rig: newRig(t, nil), names: make(map[string]string), ids: make(map[string]string)}
	defer p.finish()
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	var got []string
	for _, line := range want {
		if strings.HasPrefix(line, "< ") {
			continue
		}
		got = append(got, line)
		if did, ok := strings.CutPrefix(line, "> "); ok {
			p.do(p.lengthen(did))
			synctest.Wait()
			for _, what := range p.told() {
				got = append(got, "< "+p.shorten(what))
			}
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("line %d:\ngot  %s\nwant %s", i+1, append(got, "no more")[min(i, len(got))], append(want, "no more")[min(i, len(want))])
		}
	}
}

type player struct {
	*rig
	names map[string]string // of minted ids
	ids   map[string]string // by name
}

var minted = regexp.MustCompile(`sb-[A-Z2-7]{26}`)
var placeholder = regexp.MustCompile(`<[a-z]>`)

func (p *player) shorten(s string) string {
	return minted.ReplaceAllStringFunc(s, func(id string) string {
		if p.names[id] == "" {
			name := fmt.Sprintf("<%c>", 'a'+len(p.names))
			p.names[id], p.ids[name] = name, id
		}
		return p.names[id]
	})
}

func (p *player) lengthen(s string) string {
	return placeholder.ReplaceAllStringFunc(s, func(name string) string { return p.ids[name] })
}

func (p *player) do(line string) {
	p.t.Helper()
	who, rest, _ := strings.Cut(line, " ")
	switch who {
	case "client":
		if p.conn == nil {
			p.open(rest)
			return
		}
		p.send(rest)
	case "server":
		var n int
		num, said, _ := strings.Cut(rest, " ")
		if _, err := fmt.Sscan(num, &n); err != nil {
			p.t.Fatal(line)
		}
		if text, ok := strings.CutPrefix(said, "ends "); ok {
			p.asker.ask(n).ends(upstream.Errorf(-32603, "test", "%s", text))
			return
		}
		p.asker.ask(n).says(said)
	case "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			p.t.Fatal(err)
		}
		time.Sleep(d)
	case "calls":
		p.mu.Lock()
		defer p.mu.Unlock()
		p.deaf = rest == "deaf"
		for _, s := range p.sinks {
			s.setReads(!p.deaf)
		}
	case "events":
		p.events.setReads(rest != "deaf")
	case "cancel":
		p.calls[rest].Cancel(upstream.ErrClosed)
	case "end":
		p.conn.End(upstream.ErrShutdown)
	default:
		p.t.Fatalf("what is %q?", line)
	}
}
