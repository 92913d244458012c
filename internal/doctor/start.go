package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/signalbox-mcp/signalbox/internal/child"
)

// startFault says why a process could not be started at all.
func (x *exam) startFault(err error) *Finding {
	var start *child.StartError
	var at *fs.PathError
	if !errors.As(err, &start) {
		return &Finding{"start", "it could not be started: " + x.veil.text(err.Error(), maxQuote)}
	}
	name := x.quote(firstWord(start.Command))
	switch {
	case errors.As(start.Err, &at) && at.Op == "chdir":
		return &Finding{"cwd-missing", "its working directory " + x.quote(x.server.Program.Dir) + " does not exist; mend --cwd (in a file: cwd)"}
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) && !x.exists():
		if strings.ContainsAny(start.Command, " \t|&;<>") {
			return x.shellLine(start.Command)
		}
		if start.Path == "" {
			return &Finding{"file-missing", "the command " + name + " does not exist; mend the path, or set --cwd if it is a relative one"}
		}
		return &Finding{"command-missing", "the command " + name + " is in no directory of the PATH that the server gets; install it, give its full path, or set PATH with --env PATH=..."}
	case errors.Is(err, fs.ErrNotExist):
		return x.interpreter(name)
	case errors.Is(err, fs.ErrPermission):
		if info, statErr := os.Stat(x.path()); statErr == nil && info.IsDir() {
			return &Finding{"is-directory", "the command " + name + " is a directory; name the program in it"}
		}
		return &Finding{"not-executable", "the command " + name + " may not be executed; chmod +x it, or put its interpreter before it (node, python3)"}
	case errors.Is(err, syscall.ENOEXEC):
		return x.format(name)
	}
	return &Finding{"start", "the command " + name + " could not be started: " + x.veil.text(start.Err.Error(), maxQuote)}
}

// shellLine: program and arguments are in one word. What stands behind the first
// may be secret.
func (x *exam) shellLine(command string) *Finding {
	first := firstWord(strings.TrimSpace(command))
	switch {
	case strings.HasSuffix(first, "="+masked):
		return &Finding{"shell-assignment", "the command begins with an assignment (" + x.veil.text(first, maxQuote) + "), which only a shell understands; give variables with --env, and the program and each argument as words of their own"}
	case strings.ContainsAny(command, "|&;<>$`"):
		return &Finding{"shell-line", "the command is a line for a shell, and no shell runs it; write -- sh -c '...' (in a file: command sh, args [-c, ...])"}
	}
	return &Finding{"one-word", "the command is one word that begins with " + x.quote(first) + " and has blanks in it; give the program and each argument as words of their own, without quotes around all (in a file: command and args)"}
}

// path is where the command is, as the start would find it; empty where it is
// looked up in PATH.
func (x *exam) path() string {
	p := x.server.Program
	if !strings.ContainsRune(p.Args[0], '/') && !strings.ContainsRune(p.Args[0], filepath.Separator) {
		for _, dir := range filepath.SplitList(pathOf(p.Env)) {
			if full := filepath.Join(dir, p.Args[0]); filepath.IsAbs(dir) && isFile(full) {
				return full
			}
		}
		return ""
	}
	if filepath.IsAbs(p.Args[0]) {
		return p.Args[0]
	}
	return filepath.Join(p.Dir, p.Args[0])
}

func pathOf(env []string) string {
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); name == "PATH" {
			return value
		}
	}
	return ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func (x *exam) exists() bool {
	_, err := os.Stat(x.path())
	return err == nil
}

// firstBytes of the command; empty where it cannot be read.
func (x *exam) firstBytes() []byte {
	f, err := os.Open(x.path())
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := f.Read(head) // nothing read is an answer, too
	return head[:n]
}

// interpreter: the file is there, and what should run it is not.
func (x *exam) interpreter(name string) *Finding {
	line, _, _ := bytes.Cut(x.firstBytes(), []byte("\n"))
	if !bytes.HasPrefix(line, []byte("#!")) {
		return &Finding{"loader-missing", "the command " + name + " is built for another system: its loader does not exist here; use a build for this one (glibc or musl)"}
	}
	if bytes.HasSuffix(line, []byte("\r")) {
		return &Finding{"crlf-shebang", "the first line of the command " + name + " ends with a carriage return, so that its interpreter is not found; give the file Unix line ends"}
	}
	words := strings.Fields(string(line[2:]))
	if len(words) == 0 {
		words = []string{""}
	}
	return &Finding{"bad-interpreter", fmt.Sprintf("the first line of the command %s names the interpreter %s, which does not exist; install it or mend the line (#!/usr/bin/env node)", name, x.quote(words[0]))}
}

// format: the system does not know how to run the file.
func (x *exam) format(name string) *Finding {
	head := x.firstBytes()
	for _, magic := range []string{"\x7fELF", "MZ", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return &Finding{"wrong-machine", "the command " + name + " is built for another kind of machine or system; use a build for this one"}
		}
	}
	return &Finding{"no-shebang", "the command " + name + " is a script that does not say what runs it; begin it with a line like #!/usr/bin/env node, or put the interpreter before it (node, python3)"}
}
