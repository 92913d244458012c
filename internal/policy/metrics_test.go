package policy

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func contains(b *bytes.Buffer, s string) bool { return strings.Contains(b.String(), s) }

func TestFirstRefusalOfANameIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t, rules(), &fakeServer{})
		lines := func() int { return bytes.Count(x.log.Bytes(), []byte("\n")) }
		tool := func(name string) { x.call(message("tools/call", `{"name":"`+name+`"}`)) }
		tool("no")
		tool("no")
		tool(`line\nbreak \"quoted\"` + strings.Repeat("x", 1000))
		x.call(message("prompts/get", `{"name":"no"}`))
		x.call(message("resources/read", `{"uri":"https://user:password@host/path?token=hidden#part"}`))
		if lines() != 4 || !contains(&x.log, "level=INFO") || !contains(&x.log, `kind=tool name=no`) || !contains(&x.log, `name="line\nbreak \"quoted\"xxx`) ||
			!contains(&x.log, `name=https://host/path`) || contains(&x.log, "hidden") || contains(&x.log, "password") || contains(&x.log, strings.Repeat("x", 101)) {
			t.Errorf("log:\n%s", &x.log)
		}
		for i := range 1000 {
			tool(fmt.Sprint("no", i))
		}
		if lines() != maxLogged+2 { // those of other kinds counted
			t.Errorf("%d lines of 1000 names", lines())
		}
		time.Sleep(logWindow)
		tool("no")
		if lines() != maxLogged+3 {
			t.Errorf("%d lines, want one more after the window", lines())
		}
		if x.refusals(kindTool) != 1004 || x.refusals(kindPrompt) != 1 || x.refusals(kindResource) != 1 {
			t.Errorf("counted %d tools, %d prompts, %d resources", x.refusals(kindTool), x.refusals(kindPrompt), x.refusals(kindResource))
		}
	})
}

func TestSessionsRefuseAtOnce(t *testing.T) {
	x := newRig(t, rules(), &fakeServer{})
	var wg sync.WaitGroup
	for i := range 8 {
		req := request(t, message("tools/call", fmt.Sprintf(`{"name":"no%d"}`, i%2)))
		wg.Go(func() {
			if _, err := x.conn.Start(req, nil); err == nil {
				t.Error("a refused call arrived")
			}
		})
	}
	wg.Wait()
	if lines := bytes.Count(x.log.Bytes(), []byte("\n")); x.refusals(kindTool) != 8 || lines != 2 {
		t.Errorf("%d counted, log:\n%s", x.refusals(kindTool), &x.log)
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"file:///a/b": "file:///a/b", "x:a?b#c": "x:a", "x:a#b?c": "x:a", "https://u:p@h:1/a@b": "https://h:1/a@b",
		"https://u:p@x@h": "https://h", "": "", "no uri": "no uri", "//u@h": "//h",
	} {
		if got := string(redact([]byte(in))); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestRefusalsAreTold(t *testing.T) {
	var told []string
	metrics := NewMetrics()
	metrics.Refused = func(server, kind, name string) { told = append(told, server+" "+kind+" "+name) }
	r := newRefusals(&Config{Name: "srv", Metrics: metrics, Log: slog.New(slog.DiscardHandler)})
	r.add(kindTool, []byte("no"))
	r.add(kindTool, []byte("no"))
	r.add(kindResource, []byte("https://user:password@host/path?token=hidden"))
	r.unreadable(errors.New("not a list"))
	if got := strings.Join(told, ", "); got != "srv tool no, srv tool no, srv resource https://host/path, srv list not a list" {
		t.Errorf("told of %s", got)
	}
}
