package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
)

// command tries a program out. nil: all is well.
func (x *exam) command() *Finding {
	modern := false
	if x.server.Era != "legacy" {
		l, err := x.start()
		if err != nil {
			return x.startFault(err)
		}
		var fault *Finding
		modern, fault = x.probe(l)
		seen := l.stop()
		if modern {
			x.show(seen)
		}
		if fault != nil || x.ctx.Err() != nil {
			return fault
		}
	}
	if modern && x.server.Era == "modern" {
		return nil
	}
	l, err := x.start()
	if err != nil {
		return x.startFault(err)
	}
	limit := x.server.StartTimeout
	if modern {
		limit = min(limit, discoverWait) // it works already: this only tells whether it speaks both
	}
	before := *x.r
	err = x.handshake(l, limit)
	if modern {
		if l.stop(); err != nil { // of the other era alone, which is no fault
			*x.r = before
		}
		return nil
	}
	silent := errors.Is(err, errNoAnswer)
	buffered := silent && l.alive() && l.quiet() && x.coax(l)
	seen := l.stop()
	x.show(seen)
	switch {
	case silent:
		return x.diagnose(seen, buffered)
	case err != nil:
		return found(err)
	}
	x.remark(seen)
	return nil
}

// found is the Finding that an attempt failed with.
func found(err error) *Finding {
	var f *Finding
	if errors.As(err, &f) {
		return f
	}
	return &Finding{"failed", err.Error()}
}

// probe asks for the per-request era, and looks around in it.
func (x *exam) probe(l *life) (modern bool, fault *Finding) {
	ctx, cancel := x.wait("server/discover", min(discoverWait, x.server.StartTimeout))
	d, err := discover(ctx, l, x.o.Version)
	cancel()
	switch {
	case err == nil && d.perRequest:
	case x.server.Era == "modern" && x.ctx.Err() == nil:
		return false, &Finding{"era", "the configuration says era: modern, and it does not answer server/discover with " + string(mcp.R20260728) + "; leave era out to have it found by asking"}
	default:
		return false, nil
	}
	x.learn(perRequest, d.versions, d.result.ServerInfo, d.result.Capabilities, time.Since(l.born))
	if !slices.Contains(x.r.Capabilities, "tools") {
		return true, nil
	}
	if err := x.tools(l, requestMeta(x.o.Version)); errors.Is(err, errNoAnswer) {
		return true, x.unanswered()
	} else if err != nil {
		return true, found(err)
	}
	return true, nil
}

func (x *exam) unanswered() *Finding {
	return &Finding{"tools-silent", fmt.Sprintf("it declares tools and does not answer tools/list within %s; the server has to be mended", listWait)}
}

// coax asks for so much that a buffer of stdout has to be written out, and tells
// whether that brought anything.
func (x *exam) coax(l *life) bool {
	ctx, cancel := x.wait("buffer", coaxWait)
	defer cancel()
	heard := l.heard()
	for range coaxPings {
		l.send("ping", "{}", strings.Repeat(".", coaxPadding))
	}
	select {
	case <-heard:
		return true
	case <-l.gone:
	case <-ctx.Done():
	}
	return false
}

// What coax sends comes back as 64 KiB, more than any usual buffer holds.
const (
	coaxPings   = 80
	coaxPadding = 800
)

// show puts what was seen into the report.
func (x *exam) show(e *evidence) {
	x.r.Noise = Noise{Lines: e.lines, First: e.first}
	x.r.Stderr = e.tail()
}

// remark notes what is wrong with a server that works all the same.
func (x *exam) remark(e *evidence) {
	if e.lines > 0 {
		text := fmt.Sprintf("%d lines on its stdout are no messages", e.lines)
		if e.lines == 1 {
			text = "1 line on its stdout is no message"
		}
		x.note("noise", text+", the first is "+inQuotes(e.first[0])+"; that is skipped here, but other programs may not do so: let it log to stderr")
	}
	if e.exit.Signal == "SIGKILL" && !e.ended {
		x.note("lingers", "it ends neither when its stdin is closed nor at SIGTERM, so that it has to be killed after each session")
	}
}
