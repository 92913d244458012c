// Command fakeserver is an MCP server over stdio, made to test what stands in front of
// it. It is written by hand, without an SDK, so that it can report the very bytes it
// received and can break every rule on request.
//
// It serves the handshake revisions. Calls run at the same time, each in a goroutine of
// its own; answers come in whatever order they are ready. End of input is logged and
// ends it with status 0.
//
// Besides initialize, ping, tools/list, tools/call, resources/list, resources/read,
// resources/subscribe, resources/unsubscribe, prompts/list and logging/setLevel it knows
// the custom request test/echo, whose result is its params, byte for byte. [toolTable]
// lists the tools.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options are the command line. All but version, record and start-delay are ways to
// misbehave.
type options struct {
	version     string        // answer initialize with this revision, whatever was asked
	record      string        // append every line received to this file
	startDelay  time.Duration // wait before reading anything
	banner      bool          // print lines that are no JSON before anything else
	noise       int           // print so many such lines before each answer to a call
	neverRead   bool          // leave stdin alone
	ignoreTerm  bool          // live on after SIGTERM and after the end of stdin
	grandchild  bool          // start a process that keeps stdout and stderr open
	exitAtStart int           // exit with this status at once, if not negative
	answerTwice bool          // answer each call twice
	foreignID   bool          // answer calls under ids that nobody used
	crlf        bool          // end lines in CR LF, with blank lines between
	batch       bool          // answer calls by arrays
	idle        bool          // be the grandchild: do nothing
}

func parseOptions() *options {
	o := new(options)
	flag.StringVar(&o.version, "version", "", "answer initialize with this `revision` instead of the one asked for")
	flag.StringVar(&o.record, "record", "", "append each line received to this `file`, as it came")
	flag.DurationVar(&o.startDelay, "start-delay", 0, "wait so long before reading")
	flag.BoolVar(&o.banner, "banner", false, "print a banner to stdout at start")
	flag.IntVar(&o.noise, "noise", 0, "print `N` lines that are no JSON before each answer to a call")
	flag.BoolVar(&o.neverRead, "never-read", false, "never read stdin")
	flag.BoolVar(&o.ignoreTerm, "ignore-term", false, "live on after SIGTERM and after the end of stdin")
	flag.BoolVar(&o.grandchild, "grandchild", false, "leave a process behind that holds stdout and stderr open")
	flag.IntVar(&o.exitAtStart, "exit-at-start", -1, "exit with this `code` at once")
	flag.BoolVar(&o.answerTwice, "answer-twice", false, "answer each call twice")
	flag.BoolVar(&o.foreignID, "foreign-id", false, "answer calls under ids that nobody used")
	flag.BoolVar(&o.crlf, "crlf", false, "end lines in CR LF, with blank lines between them")
	flag.BoolVar(&o.batch, "batch", false, "answer calls by arrays of one response")
	flag.BoolVar(&o.idle, "idle", false, "do nothing until killed")
	flag.Parse()
	return o
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("fakeserver: ")
	o := parseOptions()
	if o.exitAtStart >= 0 {
		log.Printf("exiting with %d, as told", o.exitAtStart)
		os.Exit(o.exitAtStart)
	}
	if o.ignoreTerm || o.idle {
		signal.Ignore(syscall.SIGTERM)
	}
	if o.idle || o.neverRead {
		block()
	}
	if err := run(o); err != nil {
		log.Fatal(err)
	}
	log.Print("end of input")
	if o.ignoreTerm {
		block()
	}
}

// block returns when the process is killed, that is never.
func block() {
	for {
		time.Sleep(time.Hour)
	}
}

func run(o *options) error {
	if o.grandchild {
		if err := startGrandchild(); err != nil {
			return err
		}
	}
	out := newWriter(os.Stdout, o)
	if o.banner {
		out.line([]byte(strings.Join([]string{"fakeserver v1.0 ready", "* docs: none *", "✅ listening on stdio"}, "\n")))
	}
	time.Sleep(o.startDelay)
	in, err := newReader(os.Stdin, o.record)
	if err != nil {
		return err
	}
	return newServer(o, in, out).run()
}

func startGrandchild() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "-idle")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the grandchild: %w", err)
	}
	log.Printf("grandchild has pid %d", cmd.Process.Pid)
	return cmd.Process.Release()
}
