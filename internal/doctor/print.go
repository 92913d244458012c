package doctor

import (
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	shownTools = 12 // names of tools in the text; the rest is counted
	shownWell  = 3  // lines of stderr of a server that is well
	shownIll   = 12 // and of one that is not
)

// Print writes a report for people: a line with the verdict, and a line for each
// thing known, aligned.
func Print(w io.Writer, r Report) {
	verdict := "well"
	if !r.Well {
		verdict = "unwell"
	}
	p := printer{w}
	fmt.Fprintf(w, "%s: %s\n", r.Server, verdict)
	if r.Finding != nil {
		p.row("wrong", r.Finding.Text)
	}
	for _, n := range r.Notes {
		p.row("note", n.Text)
	}
	if r.Transport == "stdio" {
		p.row("command", r.Target)
	} else {
		p.row("url", r.Target)
		p.row("transport", map[string]string{streamableHTTP: "Streamable HTTP", httpSSE: "HTTP+SSE"}[r.Transport])
	}
	if len(r.Eras) > 0 {
		p.row("era", strings.Join(r.Eras, " and ")+", "+strings.Join(r.Revisions, ", "))
	}
	p.row("server", strings.TrimSpace(r.Name+" "+r.Version))
	if len(r.Eras) > 0 && len(r.Capabilities) == 0 {
		p.row("offers", "nothing")
	}
	p.row("offers", strings.Join(r.Capabilities, ", "))
	if r.Tools != nil {
		p.row("tools", toolsText(r.Tools))
	}
	if r.StartMillis > 0 {
		p.row("start", (time.Duration(r.StartMillis) * time.Millisecond).String())
	}
	p.noise(r)
	p.stderr(r)
}

type printer struct{ w io.Writer }

func (p printer) row(name, text string) {
	if text != "" {
		fmt.Fprintf(p.w, "  %-10s %s\n", name, text)
	}
}

func (p printer) noise(r Report) {
	if r.Noise.Lines == 0 {
		return
	}
	lines := fmt.Sprintf("%d lines on stdout are no messages", r.Noise.Lines)
	if r.Noise.Lines == 1 {
		lines = "1 line on stdout is no message"
	}
	p.row("noise", lines)
	for _, line := range r.Noise.First {
		p.row("", "| "+line)
	}
}

func (p printer) stderr(r Report) {
	shown := shownIll
	if r.Well {
		shown = shownWell
	}
	name := "stderr"
	for _, line := range r.Stderr[max(0, len(r.Stderr)-shown):] {
		p.row(name, "| "+line)
		name = ""
	}
}

func toolsText(t *Tools) string {
	if t.Count == 0 {
		return "0"
	}
	names := t.Names[:min(len(t.Names), shownTools)]
	text := fmt.Sprintf("%d: %s", t.Count, strings.Join(names, ", "))
	if more := t.Count - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Summary is one line about all.
func Summary(reports []Report) string {
	well := 0
	for _, r := range reports {
		if r.Well {
			well++
		}
	}
	noun := "servers"
	if len(reports) == 1 {
		noun = "server"
	}
	return fmt.Sprintf("%d %s: %d well, %d unwell", len(reports), noun, well, len(reports)-well)
}
