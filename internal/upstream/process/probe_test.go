package process

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
)

const probeLine = `{"jsonrpc":"2.0","id":"p","method":"server/discover","params":{}}`

// A probe has a process of its own, which is stopped whatever it does.
func TestProbe(t *testing.T) {
	for name, tt := range map[string]struct {
		react func(p *fakeProcess, line string)
		want  string
		after time.Duration
	}{
		"answer": {func(p *fakeProcess, line string) { p.answers(line, `{"x":1}`) }, `{"jsonrpc":"2.0","id":"p","result":{"x":1}}`, 0},
		"noise, requests and other ids before it": {func(p *fakeProcess, line string) {
			p.says("starting")
			p.says(`{"jsonrpc":"2.0","id":"p","method":"roots/list"}`)
			p.says(`{"jsonrpc":"2.0","id":"q","result":{}}`)
			p.says(`{"jsonrpc":"2.0","id":"p","error":{"code":0,"message":"no"}}`)
		}, `{"jsonrpc":"2.0","id":"p","error":{"code":0,"message":"no"}}`, 0},
		"an error under no id": {func(p *fakeProcess, _ string) {
			p.says(`{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`)
		},
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`, 0},
		"exit":    {func(p *fakeProcess, _ string) { p.exits(child.ExitInfo{Code: 1}) }, "", 0},
		"silence": {func(*fakeProcess, string) {}, "", 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, false)
				defer w.Close()
				w.starts(func(p *fakeProcess) error { p.react = tt.react; return nil })
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				reply, err := w.Probe(ctx, []byte(probeLine))
				if err != nil || string(reply) != tt.want {
					t.Errorf("%q %v, want %q", reply, err, tt.want)
				}
				if took := time.Since(began); took != tt.after {
					t.Errorf("it took %v, want %v", took, tt.after)
				}
				time.Sleep(time.Minute)
				if w.spawned() != 1 || !w.proc().stopped() {
					t.Error("the process was not stopped")
				}
			})
		})
	}
}

func TestProbeStartFails(t *testing.T) {
	w := newWorld(t, false)
	w.starts(func(*fakeProcess) error { return errNoSuchCommand })
	if _, err := w.Probe(t.Context(), []byte(probeLine)); err != errNoSuchCommand {
		t.Error(err)
	}
}
