package process

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`

// direct runs a test on a process of the per-request era, with fake time.
func direct(t *testing.T, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false, func(c *Config) { c.PerRequest = true })
		w.starts(func(p *fakeProcess) error { p.react = discovers; return nil })
		defer func() {
			w.Close()
			time.Sleep(time.Minute)
			w.checkEmpty()
		}()
		f(t, w)
	})
}

// discovers is a server that is up at once.
func discovers(p *fakeProcess, line string) {
	if methodOf(line) == mcp.ServerDiscover {
		p.answers(line, `{"resultType":"complete","supportedVersions":["2026-07-28"]}`)
	}
}

// asked are the lines that a process got from clients.
func (p *fakeProcess) asked() []string {
	return slices.DeleteFunc(p.got(), func(line string) bool { return methodOf(line) == mcp.ServerDiscover })
}

// heard are the notifications that a sink took, one a line.
type heard struct{ list []string }

func (h *heard) note(_, what string, b []byte) { h.list = append(h.list, what+" "+string(b)) }

func (w *world) ask(line string) (upstream.Call, *checkingSink, *heard) {
	w.t.Helper()
	h := new(heard)
	sink := newCallSink(w.t, "ask", func() *hub { return w.shared })
	sink.note = h.note
	call, err := w.Ask(request(line), sink)
	if err != nil {
		w.t.Fatal(err)
	}
	return call, sink, h
}

func demandHeard(t *testing.T, h *heard, want ...string) {
	t.Helper()
	if got := strings.Join(h.list, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("heard\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// Two clients with one id and one token: each gets its own, and no handshake is
// made.
func TestDirectKeepsIDsApart(t *testing.T) {
	direct(t, func(t *testing.T, w *world) {
		line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + modernMeta + `,"progressToken":7},"name":"t"}}`
		_, one, heardOne := w.ask(line)
		_, two, heardTwo := w.ask(strings.Replace(line, `"id":1`, `"id":"1"`, 1))
		synctest.Wait()
		p := w.proc()
		got := p.asked()
		if len(got) != 2 || w.spawned() != 1 || strings.Contains(got[0], "initialize") {
			t.Fatalf("%d processes, lines %q", w.spawned(), got)
		}
		token := func(line string) string {
			_, rest, _ := strings.Cut(line, `"progressToken":`)
			tok, _, _ := strings.Cut(rest, "}")
			return tok
		}
		p.says(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token(got[1]) + `,"progress":1}}`)
		p.says(`{"jsonrpc":"2.0","id":` + idOf(got[1]) + `,"result":{"resultType":"complete","n":9007199254740993}}`)
		p.says(`{"jsonrpc":"2.0","id":` + idOf(got[0]) + `,"result":{"resultType":"complete"}}`)
		synctest.Wait()
		demand(t, one, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}`)
		demand(t, two, `{"jsonrpc":"2.0","id":"1","result":{"resultType":"complete","n":9007199254740993}}`)
		demandHeard(t, heardOne, `reply {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}`)
		demandHeard(t, heardTwo, `own {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}`,
			`reply {"jsonrpc":"2.0","id":"1","result":{"resultType":"complete","n":9007199254740993}}`)
	})
}

func listenLine(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{` + modernMeta + `},"notifications":{"toolsListChanged":true}}}`
}

func subscribedTo(method, id string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`
}

const (
	acknowledged = "notifications/subscriptions/acknowledged"
	toolsChanged = "notifications/tools/list_changed"
)

// A listen hears what names it, under its own id and type, and lives through the
// death of the process without its client noticing.
func TestDirectListen(t *testing.T) {
	direct(t, func(t *testing.T, w *world) {
		_, sink, h := w.ask(listenLine("4"))
		_, other, heardOther := w.ask(listenLine(`"4"`))
		synctest.Wait()
		p := w.proc()
		id := idOf(p.asked()[0])
		p.says(subscribedTo(toolsChanged, id)) // before the acknowledgement: forbidden
		p.says(subscribedTo(acknowledged, id))
		p.says(subscribedTo(toolsChanged, id))
		p.says(subscribedTo(toolsChanged, `"nobody"`))
		synctest.Wait()
		demandHeard(t, h, "own "+subscribedTo(acknowledged, "4"), "own "+subscribedTo(toolsChanged, "4"))
		demandHeard(t, heardOther)

		p.exits(child.ExitInfo{Code: 1})
		time.Sleep(time.Second)
		demand(t, other, "process_exited") // its client had not been told that it stands
		next := w.proc()
		if next == p {
			t.Fatal("the process was not started again for the listen")
		}
		again := next.asked()
		if len(again) != 1 || idOf(again[0]) != id {
			t.Fatalf("asked again with %q", again)
		}
		next.says(`{"jsonrpc":"2.0","method":"` + acknowledged + `","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["a://b"]},"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`)
		next.says(subscribedTo(toolsChanged, id))
		synctest.Wait()
		demandHeard(t, h, "own "+subscribedTo(acknowledged, "4"), "own "+subscribedTo(toolsChanged, "4"),
			"own "+subscribedTo(toolsChanged, "4"), // it may have changed meanwhile
			`own {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://b","_meta":{"io.modelcontextprotocol/subscriptionId":4}}}`,
			"own "+subscribedTo(toolsChanged, "4"))

		next.says(`{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`)
		synctest.Wait()
		demand(t, sink, string(upstream.ListenEnd([]byte("4"))))
	})
}

func TestDirectListenEndedByCancel(t *testing.T) {
	direct(t, func(t *testing.T, w *world) {
		_, sink, _ := w.ask(listenLine("4"))
		synctest.Wait()
		p := w.proc()
		p.says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + idOf(p.asked()[0]) + `}}`)
		synctest.Wait()
		demand(t, sink, string(upstream.ListenEnd([]byte("4"))))
	})
}

// Such a cancel may name the listen as all that comes for it does. The client does
// not see it: it holds the id that the process knows.
func TestDirectListenEndedByNamedCancel(t *testing.T) {
	direct(t, func(t *testing.T, w *world) {
		_, sink, h := w.ask(listenLine("4"))
		synctest.Wait()
		p := w.proc()
		id := idOf(p.asked()[0])
		p.says(subscribedTo(acknowledged, id))
		p.says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id +
			`,"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`)
		synctest.Wait()
		end := string(upstream.ListenEnd([]byte("4")))
		demand(t, sink, end)
		demandHeard(t, h, "own "+subscribedTo(acknowledged, "4"), "reply "+end)
	})
}

// No time limit ends a listen; a call that waits is ended by them.
func TestDirectTimes(t *testing.T) {
	direct(t, func(t *testing.T, w *world) {
		_, listen, _ := w.ask(listenLine("1"))
		_, call, _ := w.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{` + modernMeta + `}}}`)
		time.Sleep(11 * time.Minute)
		demand(t, call, "--call-timeout")
		time.Sleep(48 * time.Hour)
		demand(t, listen, "open")
	})
}

func TestDirectCancel(t *testing.T) {
	direct(t, func(t *testing.T, w *world) {
		call, sink, _ := w.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{` + modernMeta + `}}}`)
		synctest.Wait()
		call.Cancel(upstream.ErrCancelled)
		synctest.Wait()
		got := w.proc().asked()
		if len(got) != 2 || !strings.Contains(got[1], "notifications/cancelled") || !strings.Contains(got[1], idOf(got[0])) {
			t.Errorf("the process got %q", got)
		}
		demand(t, sink, "cancelled")
	})
}

// Log messages name no call, so one call at a time may ask for them; the wish of
// another is not passed on.
func TestDirectLogs(t *testing.T) {
	direct(t, func(t *testing.T, w *world) {
		line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + modernMeta + `,"io.modelcontextprotocol/logLevel":"info"}}}`
		message := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`
		_, one, heardOne := w.ask(line)
		_, _, heardTwo := w.ask(line)
		synctest.Wait()
		p := w.proc()
		got := p.asked()
		if !strings.Contains(got[0], "logLevel") || strings.Contains(got[1], "logLevel") {
			t.Errorf("the process got %q", got)
		}
		p.says(message)
		p.says(`{"jsonrpc":"2.0","id":` + idOf(got[0]) + `,"result":{}}`)
		p.says(message) // too late: of nobody
		synctest.Wait()
		demand(t, one, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		demandHeard(t, heardOne, "own "+message, `reply {"jsonrpc":"2.0","id":1,"result":{}}`)
		demandHeard(t, heardTwo)
		if n := w.dropped()[DropUnattributable]; n != 1 {
			t.Errorf("%d messages dropped, want 1", n)
		}
	})
}

// Log messages never come on the stream of a listen, which is open for days: it keeps
// nobody from asking for them.
func TestDirectListenTakesNoLogs(t *testing.T) {
	direct(t, func(t *testing.T, w *world) {
		level := modernMeta + `,"io.modelcontextprotocol/logLevel":"info"`
		message := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`
		_, _, h := w.ask(strings.Replace(listenLine("4"), modernMeta, level, 1))
		_, _, heardCall := w.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + level + `}}}`)
		synctest.Wait()
		p := w.proc()
		if got := p.asked(); strings.Contains(got[0], "logLevel") || !strings.Contains(got[1], "logLevel") {
			t.Errorf("the process got %q", got)
		}
		p.says(message)
		synctest.Wait()
		demandHeard(t, h)
		demandHeard(t, heardCall, "own "+message)
	})
}

// What a cancelled call still makes the process log is of nobody: the next one may
// not ask for log messages before the process is done with it, or has been quiet.
func TestDirectLateLogs(t *testing.T) {
	line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + modernMeta + `,"io.modelcontextprotocol/logLevel":"info"}}}`
	message := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"of the cancelled call"}}`
	for name, tt := range map[string]struct {
		then func(w *world, id string) // after the message that came late
		may  bool                      // a call after that may ask
	}{
		"still at it": {func(w *world, _ string) { w.proc().says(message); time.Sleep(lateLogs / 2) }, false},
		"logs on": {func(w *world, _ string) {
			for range 4 {
				w.proc().says(message)
				time.Sleep(lateLogs / 2)
			}
		}, false},
		"quiet":    {func(*world, string) { time.Sleep(lateLogs) }, true},
		"answered": {func(w *world, id string) { w.proc().says(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`) }, true},
		"dead":     {func(w *world, _ string) { w.proc().exits(child.ExitInfo{Code: 1}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			direct(t, func(t *testing.T, w *world) {
				w.ask(listenLine("9")) // of somebody else
				call, _, _ := w.ask(line)
				synctest.Wait()
				id := idOf(w.proc().asked()[1])
				call.Cancel(upstream.ErrCancelled)
				_, _, h := w.ask(line)
				w.proc().says(message)
				synctest.Wait()
				demandHeard(t, h)
				tt.then(w, id)
				synctest.Wait()
				time.Sleep(time.Second)
				w.proc().asked()
				w.ask(line)
				synctest.Wait()
				if got := w.proc().asked(); strings.Contains(got[len(got)-1], "logLevel") != tt.may {
					t.Errorf("the process got %q", got)
				}
			})
		})
	}
}

// One that the process has not seen makes it log nothing.
func TestDirectUnseenLogs(t *testing.T) {
	direct(t, func(t *testing.T, w *world) {
		line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + modernMeta + `,"io.modelcontextprotocol/logLevel":"info"}}}`
		w.ask(listenLine("9"))
		synctest.Wait()
		p := w.proc()
		p.asked()
		p.stall()
		call, _, _ := w.ask(line)
		call.Cancel(upstream.ErrCancelled)
		w.ask(line)
		p.resume()
		synctest.Wait()
		if got := p.asked(); len(got) != 1 || !strings.Contains(got[0], "logLevel") {
			t.Errorf("the process got %q", got)
		}
	})
}

// A request of the server is forbidden in this era, and so is an answer to it.
func TestDirectServerRequest(t *testing.T) {
	direct(t, func(t *testing.T, w *world) {
		w.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + modernMeta + `}}}`)
		synctest.Wait()
		p := w.proc()
		p.says(`{"jsonrpc":"2.0","id":5,"method":"roots/list"}`)
		p.says(`{"jsonrpc":"2.0","id":6,"method":"ping"}`)
		synctest.Wait()
		if got := p.asked(); len(got) != 1 {
			t.Errorf("the process got %q", got)
		}
	})
}

func TestDirectStartFails(t *testing.T) {
	direct(t, func(t *testing.T, w *world) {
		w.starts(func(*fakeProcess) error { return errNoSuchCommand })
		_, sink, _ := w.ask(listenLine("1"))
		synctest.Wait()
		demand(t, sink, "executable not found")
	})
}

func TestDirectExitBeforeItIsUp(t *testing.T) {
	direct(t, func(t *testing.T, w *world) {
		w.starts(func(*fakeProcess) error { return nil })
		_, sink, _ := w.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + modernMeta + `}}}`)
		synctest.Wait()
		if asked := w.proc().asked(); len(asked) > 0 {
			t.Errorf("a process that is not up got %q", asked)
		}
		w.proc().exits(child.ExitInfo{Code: 3})
		synctest.Wait()
		demand(t, sink, "exited (code 3) before it answered server/discover")
		if _, err := w.Ask(request(`{"jsonrpc":"2.0","id":2,"method":"x","params":{`+modernMeta+`}}}`), newCallSink(t, "ask", func() *hub { return w.shared })); err == nil {
			t.Error("a process was started again at once")
		}
	})
}

// A process that never says that it is up is given up after the time for a start.
func TestDirectIsNeverUp(t *testing.T) {
	direct(t, func(t *testing.T, w *world) {
		w.starts(func(*fakeProcess) error { return nil })
		_, sink, _ := w.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + modernMeta + `}}}`)
		time.Sleep(2*time.Minute + time.Second)
		demand(t, sink, "did not answer server/discover within 2m0s (--start-timeout)")
	})
}

// A call that kills the process each time keeps nobody else waiting for the next.
func TestDirectPoison(t *testing.T) {
	direct(t, func(t *testing.T, w *world) {
		w.starts(func(p *fakeProcess) error {
			p.react = func(p *fakeProcess, line string) {
				discovers(p, line)
				if strings.Contains(line, "poison") {
					p.exits(child.ExitInfo{Code: 9})
				}
			}
			return nil
		})
		for range 5 {
			_, sink, _ := w.ask(`{"jsonrpc":"2.0","id":1,"method":"poison","params":{` + modernMeta + `}}}`)
			synctest.Wait()
			demand(t, sink, "process_exited")
		}
		_, sink, _ := w.ask(`{"jsonrpc":"2.0","id":2,"method":"good","params":{` + modernMeta + `}}}`)
		synctest.Wait()
		p := w.proc()
		p.answers(p.asked()[0], `{}`)
		synctest.Wait()
		demand(t, sink, `{"jsonrpc":"2.0","id":2,"result":{}}`)
	})
}
