package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/bench/internal/echo"
)

// asServer makes the test program the server: it must be a process of its own, since a thread
// that waits in a raw system call holds up the Go runtime.
const asServer = "ECHOSERVER_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t testing.TB, args ...string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0], args...)}
	c.cmd.Env = append(os.Environ(), asServer+"=1")
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() }) // a server that has ended is not there to kill
	c.in, c.out = in, bufio.NewReaderSize(out, 1<<20)
	return c
}

func (c *child) send(t testing.TB, text string) {
	t.Helper()
	if _, err := io.WriteString(c.in, text); err != nil {
		t.Fatal(err)
	}
}

func (c *child) line(t testing.TB) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// end closes the server's input and returns the rest of what it wrote.
func (c *child) end(t testing.TB) string {
	t.Helper()
	if err := c.in.Close(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(c.out)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return string(rest)
}

func request(id int, tool, message string) string {
	return fmt.Sprintf(`{"method":"tools/call","params":{"name":"%s","arguments":{"message":"%s"},"_meta":{"progressToken":"p"}},"jsonrpc":"2.0","id":%d}`+"\n", tool, message, id)
}

func answer(line string) string { return string(echo.Parse([]byte(line)).Answer(nil)) + "\n" }

func progress(token string, n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"%s","progress":%d,"total":3}}`+"\n", token, n)
}

func TestAnswersWholeLines(t *testing.T) {
	steps := request(4, "steps", "four")
	one, two, large := request(1, "echo", "one"), request(2, "echo", "two"), request(3, "echo", strings.Repeat("x", 3<<20))
	for _, tc := range []struct {
		name  string
		parts []string
		want  string
	}{
		{"a line", []string{one}, answer(one)},
		{"two at once", []string{one + two}, answer(one) + answer(two)},
		{"cut", []string{one + two[:9], two[9:]}, answer(one) + answer(two)},
		{"large, then small", []string{large + one}, answer(large) + answer(one)},
		{"no line end", []string{one + two[:len(two)-1]}, answer(one)},
		{"progress", []string{steps + one}, progress("p", 1) + progress("p", 2) + progress("p", 3) + answer(steps) + answer(one)},
		{"nothing", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := start(t)
			sent := make(chan error, 1)
			go func() { // reading must not wait for it: pipes are smaller than the large line
				for _, part := range tc.parts {
					if _, err := io.WriteString(c.in, part); err != nil {
						sent <- err
						return
					}
				}
				sent <- c.in.Close()
			}()
			got, err := io.ReadAll(c.out)
			if err != nil || <-sent != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("got %d bytes %.200s\nwant %d bytes %.200s", len(got), got, len(tc.want), tc.want)
			}
			if err := c.cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPerRequest(t *testing.T) {
	c := start(t, "-per-request")
	call := request(1, "echo", "one")
	c.send(t, call+`{"method":"server/discover","id":2}`+"\n")
	want := string(echo.Parse([]byte(call)).AnswerPerRequest(nil)) + "\n"
	if got := c.line(t); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if rest := c.end(t); !strings.Contains(rest, `"supportedVersions":["2026-07-28"]`) {
		t.Errorf("server/discover: %s", rest)
	}
}

func TestSleepHoldsUpNobody(t *testing.T) {
	c := start(t)
	began := time.Now()
	slow, quick := request(1, "sleep", "slow"), request(2, "echo", "quick")
	c.send(t, slow+quick)
	if got := c.line(t); got != answer(quick) {
		t.Errorf("first answer %s", got)
	}
	if got := c.line(t); got != answer(slow) || time.Since(began) < echo.SleepFor {
		t.Errorf("after %v: %s", time.Since(began), got)
	}
	if rest := c.end(t); rest != "" {
		t.Errorf("more: %s", rest)
	}
}

// TestSharedFiles starts the server on files that do not block, as a parent in another language
// may leave them.
func TestSharedFiles(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer func() { _ = ours.Close() }()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asServer+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if err := syscall.SetNonblock(pair[1], true); err != nil { // os/exec has it block
		t.Fatal(err)
	}
	_ = theirs.Close()
	large := request(1, "echo", strings.Repeat("x", 3<<20))
	for range 3 {
		sent := make(chan error, 1)
		go func() { _, err := io.WriteString(ours, large); sent <- err }()
		got := make([]byte, len(answer(large)))
		if _, err := io.ReadFull(ours, got); err != nil || <-sent != nil || string(got) != answer(large) {
			t.Fatalf("got %.100s, %v", got, err)
		}
	}
}

// BenchmarkCall measures one call after the other, made to some servers in turn, and the
// processor time that the servers themselves use for each. A server that is one of many waits
// longer for its next call, and what waking it costs shows.
func BenchmarkCall(b *testing.B) {
	for _, bm := range []struct{ servers, size int }{{1, 200}, {16, 200}, {16, 64 << 10}} {
		b.Run(fmt.Sprintf("servers=%d/size=%d", bm.servers, bm.size), func(b *testing.B) {
			servers := make([]*child, bm.servers)
			for i := range servers {
				servers[i] = start(b)
			}
			call := request(1, "echo", strings.Repeat("x", bm.size))
			want := []byte(answer(call))
			got := make([]byte, len(want))
			for next := 0; b.Loop(); next++ {
				c := servers[next%len(servers)]
				c.send(b, call)
				if _, err := io.ReadFull(c.out, got); err != nil || !bytes.Equal(got, want) {
					b.Fatalf("%v: %.200s", err, got)
				}
			}
			b.StopTimer()
			var cpu time.Duration
			var waits int64
			for _, c := range servers {
				c.end(b)
				used := c.cmd.ProcessState.SysUsage().(*syscall.Rusage)
				cpu += time.Duration(used.Utime.Nano() + used.Stime.Nano())
				waits += used.Nvcsw
			}
			b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-µs/call")
			b.ReportMetric(float64(waits)/float64(b.N), "waits/call")
		})
	}
}
