package doctor

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// diagnose says why a process never answered: the first rule that fits. buffered
// tells that an answer came when a buffer was full.
func (x *exam) diagnose(e *evidence, buffered bool) *Finding {
	if contains(x.r.Eras, handshake) { // it had answered initialize
		return x.endedLater(e)
	}
	if buffered && e.lines == 0 && e.strayText == "" { // what hangs over is only half a line
		return &Finding{"buffered", "it answers, but into a buffer that is written out only when it is full; flush stdout after each message (Python: print(..., flush=True) or --env PYTHONUNBUFFERED=1)"}
	}
	for _, rule := range []func(*evidence) *Finding{x.framing, x.question, x.otherID, x.badMessage, x.elsewhere} {
		if f := rule(e); f != nil {
			return f
		}
	}
	switch {
	case e.late:
		return &Finding{"reads-to-eof", "it answers only when its stdin is closed, so it reads all of its input first; it has to read line by line and answer each message as it comes"}
	case e.ended && e.exit.StdoutClosed:
		return &Finding{"closed-stdout", "it closed its stdout and goes on running, so no answer can come; it must keep stdout open, and a wrapper must not send it elsewhere or start the server in the background"}
	case e.ended:
		return x.ended(e)
	}
	return x.silent(e)
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }

// framing: it speaks, but not in lines of UTF-8.
func (x *exam) framing(e *evidence) *Finding {
	switch {
	case e.lsp:
		return &Finding{"lsp", "it frames its messages with Content-Length headers, as LSP does; MCP over stdio is one JSON message a line, so use a version or an option of it for that"}
	case e.utf16:
		return &Finding{"utf16", "it writes UTF-16, and MCP is UTF-8; set the encoding of its stdout (PowerShell: [Console]::OutputEncoding, .NET: Console.OutputEncoding, without byte order mark)"}
	case e.oversize > 0:
		return &Finding{"oversize", fmt.Sprintf("it writes a line of %d bytes, which is more than --max-message allows; raise that if the line is a message", e.oversize)}
	}
	return nil
}

var (
	npxQuestion = regexp.MustCompile(`(?i)need to install the following packages|ok to proceed\?`)
	question    = regexp.MustCompile(`(?i)(\?|\[y/n\]|\(y/n\)|\(yes/no\)|password:|passphrase[^:]*:|press (any key|enter)[^a-z]*|continue\?.*|login:|username:)\s*$`)
)

// question: it waits for an answer of somebody at a keyboard.
func (x *exam) question(e *evidence) *Finding {
	all := e.written()
	if slices.ContainsFunc(all, npxQuestion.MatchString) {
		return &Finding{"npx-asks", "npx waits for an answer before it installs a package (Ok to proceed?); let it say yes by itself: npx -y PACKAGE"}
	}
	if e.ended {
		return nil
	}
	for _, asked := range []string{e.partial, last(e.stderr)} {
		if question.MatchString(asked) {
			return &Finding{"asks", "it asks something and waits for somebody to type: " + x.quote(asked) + "; give it the answer by an option, or log in by hand before"}
		}
	}
	return nil
}

// otherID: a response came, and nobody can tell to what.
func (x *exam) otherID(e *evidence) *Finding {
	switch {
	case e.echo:
		return &Finding{"echo", "it sends back what it is sent, so it is no MCP server, or a terminal stands before it; check the command"}
	case e.strayText == "":
		return nil
	case e.strayID == "null":
		return &Finding{"no-id", "it answers with an error that names no request (" + inQuotes(e.strayText) + "); it could not read a valid message, so it may want other framing or another protocol"}
	}
	return &Finding{"wrong-id", "it answers under the id " + e.strayID + " instead of the request's own, \"signalbox-1\"; it has to send each id back as it came, strings included"}
}

// badMessage: what it wrote was meant as a message.
func (x *exam) badMessage(e *evidence) *Finding {
	switch {
	case e.broken == "" && e.spread && e.braces > 0:
		return &Finding{"pretty-json", "it writes JSON over several lines; MCP over stdio is one JSON message a line, so print it without indentation"}
	case e.pyDict:
		return &Finding{"python-dict", "it prints a Python dict instead of JSON (single quotes); print json.dumps(message)"}
	case e.twoOnLine:
		return &Finding{"two-on-line", "it writes two messages on one line; each needs a line of its own"}
	case e.broken != "" && strings.HasPrefix(e.why, "no valid JSON"):
		return &Finding{"bad-json", "its answer is no valid JSON (" + strings.TrimPrefix(e.why, "no valid JSON ") + " of " + inQuotes(e.broken) + "); use a JSON library to write it"}
	case e.broken != "":
		return &Finding{"not-jsonrpc", "its answer is no JSON-RPC 2.0 message (" + e.why + ", in " + inQuotes(e.broken) + "); the server has to be mended"}
	case messageMark.MatchString(e.partial) && strings.HasPrefix(e.partial, "{"):
		return &Finding{"no-line-end", "it writes its answer without a line end, so it never counts as whole; end each message with \\n and flush"}
	}
	return nil
}

var (
	listens  = regexp.MustCompile(`(?i)\b(listening|running|serving|started|available|server|endpoint|uvicorn)\b`)
	httpURL  = regexp.MustCompile(`https?://[^\s"'<>)\]]+`)
	portWord = regexp.MustCompile(`(?i)\b(?:listening|running|serving|started)\b.*\bport:?\s+(\d{2,5})\b`)
)

// elsewhere: it answers, or waits, at another place than stdout.
func (x *exam) elsewhere(e *evidence) *Finding {
	if e.answer != "" {
		return &Finding{"answers-on-stderr", "it writes its answers to stderr; messages belong on stdout, and the log on stderr"}
	}
	if e.ended {
		return nil
	}
	for _, line := range e.written() {
		at := ""
		if listens.MatchString(line) {
			at = strings.TrimRight(httpURL.FindString(line), ".,/")
		}
		if m := portWord.FindStringSubmatch(line); at == "" && m != nil {
			at = "http://127.0.0.1:" + m[1]
		}
		if at != "" {
			return &Finding{"http-as-command", "it is an HTTP server and does not speak on stdout; choose stdio by its options, or start it by itself and give Signalbox its URL, " + withPath(at)}
		}
	}
	return nil
}

// withPath adds the usual path to a URL that has none.
func withPath(at string) string {
	at = strings.Replace(at, "0.0.0.0", "127.0.0.1", 1)
	if strings.Count(at, "/") > 2 {
		return at
	}
	return "mostly " + at + "/mcp"
}

// silent: it runs, and nothing tells why it does not answer.
func (x *exam) silent(e *evidence) *Finding {
	within := x.server.StartTimeout.String()
	if e.lines > 0 {
		return &Finding{"silent-noise", fmt.Sprintf("it does not answer initialize within %s, and what it writes to stdout is no message (%s); it may be another kind of program, or need an option for MCP over stdio", within, inQuotes(e.first[0]))}
	}
	return &Finding{"silent", "it does not answer initialize within " + within + ", and writes nothing to stdout; check that it is an MCP server for stdio, or raise --start-timeout if it is slow to start"}
}

// endedLater: it had answered initialize.
func (x *exam) endedLater(e *evidence) *Finding {
	switch {
	case !e.ended && e.broken != "":
		f := x.badMessage(e)
		return &Finding{f.Case, strings.Replace(f.Text, "its answer", "its answer to tools/list", 1)}
	case !e.ended:
		return x.unanswered()
	}
	how := e.exit.String()
	if e.exit.Signal != "" && !e.exit.StdoutClosed {
		how = "was " + how
	}
	return &Finding{"ended-later", "it answered initialize, and then it " + how + x.lastWords(e) + "; the server has to be mended"}
}

// ended: the process is gone without an answer.
func (x *exam) ended(e *evidence) *Finding {
	if f := x.cause(e); f != nil {
		return f
	}
	args := x.server.Program.Args
	switch {
	case isContainer(args) && !interactive(args):
		return &Finding{"docker-no-stdin", path.Base(args[0]) + " run without -i gives the server no stdin, so it ends at once; write " + path.Base(args[0]) + " run -i --rm IMAGE"}
	case e.exit.Signal == "SIGKILL":
		return &Finding{"killed", "it was killed (SIGKILL) before it answered, which the system does where memory is short; give it more, or look into the system's log"}
	case e.exit.Signal != "":
		return &Finding{"crashed", "it was ended by a signal before it answered (" + e.exit.Signal + ")" + x.lastWords(e) + "; the program is broken, or does not fit this machine"}
	case e.exit.Code == 0 && last(e.written()) == "":
		return &Finding{"exit-zero", "it ends at once with exit code 0 and says nothing; it may need a subcommand or an option to serve on stdio, or start the server in the background"}
	case e.exit.Code == 0:
		return &Finding{"exit-zero-words", "it ends with exit code 0 without an answer" + x.lastWords(e) + "; it may need a subcommand or an option to serve on stdio"}
	}
	if x.lastWords(e) == "" {
		return &Finding{"exit-code", fmt.Sprintf("it ends with exit code %d before it answers, and says nothing; run the command by hand to see why", e.exit.Code)}
	}
	return &Finding{"exit-words", fmt.Sprintf("it ends with exit code %d before it answers%s; mend that first", e.exit.Code, x.lastWords(e))}
}

func isContainer(args []string) bool {
	name := path.Base(args[0])
	return (name == "docker" || name == "podman" || name == "nerdctl") && slices.Contains(args, "run")
}

func interactive(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return a == "--interactive" || a == "--interactive=true" || len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.Contains(a, "i") && len(a) <= 4
	})
}

func last(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}
