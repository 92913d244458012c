package box

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TagName is the environment variable by which the processes below a Box are found.
const TagName = "SIGNALBOX_E2E_TAG"

func newTag() string { return rand.Text() }

// NeedProc skips a test that looks into /proc where there is none.
func NeedProc(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
}

// Process is a running process, a zombie not counted.
type Process struct {
	PID     int
	Command string
}

func (p Process) String() string { return fmt.Sprintf("%d %s", p.PID, p.Command) }

// Descendants are the processes that inherited the tag: children, grandchildren, and
// those that left the tree.
func (b *Box) Descendants() []Process { return Tagged(b.Tag) }

// Tagged are the processes with this tag in their environment.
func Tagged(tag string) []Process {
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		panic(err) // the pattern is well formed
	}
	want := []byte(TagName + "=" + tag)
	var found []Process
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		if err != nil || !slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return bytes.Equal(v, want) }) {
			continue // gone, of another user, or none of ours
		}
		dir := filepath.Dir(path)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue
		}
		found = append(found, Process{pid, string(bytes.TrimSpace(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))})
	}
	return found
}

// Descriptors counts what the signalbox process has open.
func (b *Box) Descriptors() (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.PID))
	return len(entries), err
}

// Eventually polls a state that announces itself by no event, such as a table in /proc
// or a gauge, and fails the test where it does not come. The condition returns what it
// saw instead, or the empty string when all is well.
func Eventually(t testing.TB, what string, condition func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		saw := condition()
		if saw == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: still %s after %v", what, saw, Patience)
		}
	}
}

// EventuallyAlone waits until no process below the Box is left.
func (b *Box) EventuallyAlone(t testing.TB) {
	t.Helper()
	Eventually(t, "no process is left", func() string {
		if left := b.Descendants(); len(left) > 0 {
			return fmt.Sprint(left)
		}
		return ""
	})
}
