package child

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// runFake is the life of a fake server.
func runFake(mode string, args []string) {
	switch mode {
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "print": // each argument is a Go string literal's inside
		for _, arg := range args {
			text, err := strconv.Unquote(`"` + arg + `"`)
			if err != nil {
				panic(err)
			}
			_, _ = io.WriteString(os.Stdout, text)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "count":
		n, _ := strconv.Atoi(args[0])
		for i := range n {
			fmt.Println(i)
		}
	case "sizes": // lines of these sizes, then echo
		for _, arg := range args {
			n, _ := strconv.Atoi(arg)
			_, _ = os.Stdout.Write(append(pattern(n), '\n'))
		}
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "flood":
		_, _ = os.Stderr.Write(bytes.Repeat([]byte("noise noise noise\n"), 1<<20/18))
		fmt.Println("ready")
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "deaf":
		fmt.Println("ready")
		forever()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		forever()
	case "mute":
		fmt.Println("ready")
		os.Stdout.Close()
		forever()
	case "closestdin":
		os.Stdin.Close()
		fmt.Println("ready")
		forever()
	case "proxy":
		runProxy(args)
	default:
		panic("unknown mode " + mode)
	}
}

// runProxy is a program that uses a Supervisor and is killed.
func runProxy(args []string) {
	s, err := NewSupervisor(Options{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		panic(err)
	}
	n, _ := strconv.Atoi(args[0])
	for range n {
		p, err := s.Start(Spec{Name: "inner", Args: []string{"sh", "-c", args[1]}, Env: os.Environ()}, printer{})
		if err != nil {
			panic(err)
		}
		fmt.Println("started", p.PID())
	}
	signal.Ignore(syscall.SIGINT)
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = s.Close(context.Background())
}

// printer passes on what the inner servers say.
type printer struct{}

func (printer) Line(line []byte)              { fmt.Printf("%s\n", line) }
func (printer) Oversize(_, _ []byte, _ int64) {}
func (printer) Exit(info ExitInfo)            { fmt.Println("exit", info) }

func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

// pattern returns n bytes without LF that differ from place to place.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte((i^i>>8^i>>16)%26)
	}
	return b
}
