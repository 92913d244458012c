// Command clientwrapper is a client for the conformance suite: it starts Signalbox in
// front of the suite's server and has another client use that one.
//
//	clientwrapper SIGNALBOX CLIENT [FLAG...] URL
//
// FLAG... are of `signalbox serve`. The client runs with the environment of the suite,
// which names the scenario, and its exit status is the wrapper's.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("clientwrapper: ")
	if len(os.Args) < 4 {
		log.Fatal("usage: clientwrapper SIGNALBOX CLIENT [FLAG...] URL")
	}
	err := run(os.Args[1], os.Args[2], os.Args[3:])
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(signalbox, client string, args []string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	box := exec.CommandContext(ctx, signalbox, append([]string{"serve", "--listen", "127.0.0.1:0", "--log-level", "debug"}, args...)...)
	box.Cancel = func() error { return box.Process.Signal(syscall.SIGTERM) }
	stderr, err := box.StderrPipe()
	if err != nil {
		return err
	}
	if err := box.Start(); err != nil {
		return err
	}
	log := bufio.NewReader(io.TeeReader(stderr, os.Stderr))
	drained := make(chan struct{})
	defer func() {
		cancel()
		<-drained
		if ended := box.Wait(); err == nil && !errors.Is(ended, context.Canceled) {
			err = ended
		}
	}()
	url, err := announced(log)
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, log) // the copy for the suite is in the tee
	}()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, client, url)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

var clientURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`)

// announced is the URL for clients, which Signalbox prints once it listens.
func announced(log *bufio.Reader) (string, error) {
	for {
		line, err := log.ReadString('\n')
		if url := clientURL.FindString(line); url != "" {
			return url, nil
		}
		if err != nil {
			return "", fmt.Errorf("signalbox printed no URL: %w", err)
		}
	}
}
