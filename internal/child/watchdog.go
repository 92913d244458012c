package child

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
)

// watchdogArg as the first argument makes a program that calls RunWatchdogIfAsked a
// watchdog.
const watchdogArg = "__signalbox-watchdog"

func askedToWatch() bool { return len(os.Args) > 1 && os.Args[1] == watchdogArg }

// RunWatchdogIfAsked must be the first thing that main, or TestMain, calls. If this
// process was started as the watchdog of a Supervisor, it runs the watchdog to its end
// and returns true; the caller should then return.
//
// The watchdog reads "+PGID" and "-PGID" lines from its stdin. At their end, which
// comes when the Supervisor's process is gone for whatever reason, it kills the groups
// that remain.
func RunWatchdogIfAsked() bool {
	if !askedToWatch() {
		return false
	}
	ignoreSignals()
	_, _ = io.WriteString(os.Stdout, "+") // the Supervisor waits for this, not for ever
	for pgid := range watchedGroups(os.Stdin) {
		killGroup(pgid)
	}
	return true
}

// watchedGroups reads to the end and returns the groups that are left. A cut-off last
// line is obeyed only if it has its LF: part of a number is another number.
func watchedGroups(r io.Reader) map[int]struct{} {
	groups := make(map[int]struct{})
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return groups
		}
		if len(line) < 2 {
			continue
		}
		pgid, err := strconv.Atoi(strings.TrimSpace(line[1:]))
		if err != nil || pgid <= 1 {
			continue
		}
		switch line[0] {
		case '+':
			groups[pgid] = struct{}{}
		case '-':
			delete(groups, pgid)
		}
	}
}
