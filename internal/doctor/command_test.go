package doctor

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
)

var update = flag.Bool("update", false, "write the golden files anew")

// rig examines fakes. A wait for a fake that does not answer ends when the fake
// says that it is done, not by time.
type rig struct {
	t       *testing.T
	o       Options
	settled chan int // pids
	settle  net.Listener
	accept  chan struct{} // closed when no more is accepted
	buffers bool          // what lies in a buffer is waited for
}

func newRig(t *testing.T) *rig {
	t.Helper()
	sup, err := child.NewSupervisor(child.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, settled: make(chan int, 16), settle: l, accept: make(chan struct{})}
	r.o = Options{Supervisor: sup, Version: "test", limit: r.limit, LookupEnv: func(name string) (string, bool) { return "x", name == "SET_HERE" }}
	go r.listen()
	t.Cleanup(func() {
		if err := sup.Close(context.Background()); err != nil {
			t.Error(err)
		}
		l.Close()
		<-r.accept
	})
	return r
}

func (r *rig) listen() {
	defer close(r.accept)
	for {
		c, err := r.settle.Accept()
		if err != nil {
			return
		}
		var pid int
		_, err = fmt.Fscan(c, &pid)
		c.Close()
		if err == nil {
			r.settled <- pid
		}
	}
}

// lives tells whether a process still runs: what one that was stopped has said is
// not for the wait on the next.
func lives(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}

// limit ends a wait when the fake has settled. What lies in a buffer is waited
// for only where there is a buffer.
func (r *rig) limit(ctx context.Context, what string, _ time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if what == "buffer" {
		if !r.buffers {
			cancel()
		}
		return ctx, cancel
	}
	go func() {
		for {
			select {
			case pid := <-r.settled:
				if ctx.Err() != nil {
					r.settled <- pid // it is for the wait after this one
				} else if !lives(pid) {
					continue
				}
				cancel()
			case <-ctx.Done():
			}
			return
		}
	}()
	return ctx, cancel
}

// fake is the server of that name.
func (r *rig) fake(mode string, args ...string) Server {
	exe, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	return Server{
		Name: "fake", StartTimeout: time.Minute, MaxMessage: 1 << 20, Secrets: []string{"s3cret-value"},
		Program: child.Spec{
			Name: "fake", Args: append([]string{exe}, args...),
			Env: []string{fakeMode + "=" + mode, settleAddr + "=" + r.settle.Addr().String(), "GORACE=atexit_sleep_ms=0"},
		},
	}
}

// golden compares texts by their names with a file.
func golden(t *testing.T, name string, got map[string]string) {
	t.Helper()
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(got)) {
		b.WriteString(key + "\n    " + got[key] + "\n")
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() == string(want) {
		return
	}
	texts := make(map[string]string)
	key := ""
	for line := range strings.Lines(string(want)) {
		text, isText := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    ")
		if key != "" && isText {
			texts[key] = text
		}
		key = text
	}
	maps.DeleteFunc(texts, func(key, text string) bool { return got[key] == text })
	for key, text := range texts {
		t.Errorf("%s: %s\nwant %s", key, got[key], text)
	}
	t.Errorf("%s differs; run with -update if that is right", path)
}

// sentence is a report in one line.
func sentence(r Report) string {
	if r.Finding != nil {
		return r.Finding.Case + ": " + r.Finding.Text
	}
	all := []string{"well"}
	for _, n := range r.Notes {
		all = append(all, n.Case+": "+n.Text)
	}
	return strings.Join(all, " | ")
}

// TestCommands: every fake has its sentence, and nothing of it is a secret.
func TestCommands(t *testing.T) {
	got := make(map[string]string)
	for _, mode := range slices.Sorted(maps.Keys(fakes)) {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t) // of its own: what another fake says late is not for this one
			r.buffers = mode == "buffered"
			s := r.fake(mode)
			if mode == "docker without -i" {
				docker := filepath.Join(t.TempDir(), "docker")
				if err := os.Symlink(s.Program.Args[0], docker); err != nil {
					t.Fatal(err)
				}
				s.Program.Args = []string{docker, "run", "--rm", "some/image"}
			}
			report := Examine(context.Background(), s, r.o)
			got[mode] = sentence(report)
			var text strings.Builder
			Print(&text, report)
			if strings.Contains(text.String(), "s3cret") {
				t.Errorf("a secret is shown:\n%s", text.String())
			}
			if report.Well != (report.Finding == nil) || strings.ContainsAny(got[mode], "\n\r\x1b") {
				t.Errorf("well %v: %q", report.Well, got[mode])
			}
			if n := r.o.Supervisor.Running(); n != 0 {
				t.Errorf("%d processes are left", n)
			}
		})
	}
	golden(t, "commands.golden", got)
}
