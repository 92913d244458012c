package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// completionScript writes what signalbox prints for a shell to a file.
func completionScript(t *testing.T, shell string) string {
	t.Helper()
	r := start(t, "completion", shell)
	if code := r.exit(); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	script, _ := r.text()
	path := filepath.Join(t.TempDir(), "signalbox."+shell)
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shellRun runs a shell that is here; without it the test is skipped.
func shellRun(t *testing.T, shell string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skipf("no %s here", shell)
	}
	cmd := exec.CommandContext(t.Context(), shell, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", shell, err, out)
	}
	return string(out)
}

// completed is what was typed behind signalbox, and what has to be offered for the
// last word of it, or, with a minus sign before it, must not be.
var completed = []struct {
	typed []string
	want  []string
}{
	{[]string{""}, []string{"serve", "check", "key", "connect", "version", "completion", "---listen"}},
	{[]string{"co"}, []string{"connect", "completion", "-serve"}},
	{[]string{"key", ""}, []string{"new", "-serve"}},
	{[]string{"serve", "--max-ses"}, []string{"--max-sessions", "--max-sessions-per-principal", "---max-calls"}},
	{[]string{"serve", "--isolation", ""}, []string{"auto", "session", "shared"}},
	{[]string{"serve", "--insecure", "--on-lost", "r"}, []string{"reinitialize", "-end"}},
	{[]string{"serve", "--config", "servers."}, []string{"servers.yaml"}},
	{[]string{"serve", "--cwd", "fo"}, []string{"folder/"}},
	{[]string{"connect", "--m"}, []string{"--max-message", "---max-sessions"}},
	{[]string{"completion", ""}, []string{"bash", "zsh", "fish"}},
	{[]string{"serve", "--", "server-of-mi"}, []string{"server-of-mine"}},
	{[]string{"serve", "--", "server-of-mine", "--isol"}, []string{"---isolation"}},
	{[]string{"serve", "--listen", "check", "--iso"}, []string{"--isolation"}}, // no command, though it is spelled like one
}

// completionFolder has what the rows of completed name, and is in PATH.
func completionFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"servers.yaml": 0o600, "server-of-mine": 0o700} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return dir
}

func checkCompleted(t *testing.T, typed, want, got []string) {
	t.Helper()
	for _, w := range want {
		absent := strings.HasPrefix(w, "-") && (!strings.HasPrefix(w, "--") || strings.HasPrefix(w, "---"))
		if absent {
			w = w[1:]
		}
		// A shell may leave the slash of a folder to the reader of the keyboard.
		offered := slices.ContainsFunc(got, func(g string) bool { return strings.TrimSuffix(g, "/") == strings.TrimSuffix(w, "/") })
		if offered == absent {
			t.Errorf("signalbox %s: %q offered is %v; there are %q", strings.Join(typed, " "), w, offered, got)
		}
	}
}

func TestCompletionBash(t *testing.T) {
	script, dir := completionScript(t, "bash"), completionFolder(t)
	if got := shellRun(t, "bash", "--norc", "-c", `source "$0" && complete -p signalbox`, script); strings.TrimSpace(got) != "complete -F _signalbox signalbox" {
		t.Fatalf("bash has registered %q", got)
	}
	for _, c := range completed {
		const ask = `source "$0"; cd "$1"; shift; COMP_WORDS=(signalbox "$@"); COMP_CWORD=$#; _signalbox; printf '%s\n' "${COMPREPLY[@]}"`
		got := shellRun(t, "bash", append([]string{"--norc", "-c", ask, script, dir}, c.typed...)...)
		checkCompleted(t, c.typed, c.want, strings.Split(got, "\n"))
	}
	// Readline gives --flag=value as three words.
	got := shellRun(t, "bash", "--norc", "-c", `source "$0"; COMP_WORDS=(signalbox serve --isolation = sh); COMP_CWORD=4; _signalbox; echo "${COMPREPLY[@]}"`, script)
	if strings.TrimSpace(got) != "shared" {
		t.Errorf("--isolation=sh is completed by %q", got)
	}
}

func TestCompletionFish(t *testing.T) {
	script, dir := completionScript(t, "fish"), completionFolder(t)
	shellRun(t, "fish", "--no-execute", script)
	for _, c := range completed {
		out := shellRun(t, "fish", "--no-config", "-c", `source $argv[1]; cd $argv[2]; complete -C "signalbox $argv[3]"`, script, dir, strings.Join(c.typed, " "))
		var got []string
		for line := range strings.Lines(out) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			got = append(got, word)
		}
		checkCompleted(t, c.typed, c.want, got)
	}
}

func TestCompletionZsh(t *testing.T) {
	script := completionScript(t, "zsh")
	shellRun(t, "zsh", "-f", "-n", script)
	got := shellRun(t, "zsh", "-f", "-c", `autoload -U compinit; compinit -D -u; source $1; print $_comps[signalbox] $+functions[_signalbox_serve] $+functions[_signalbox_key_new]`, "zsh", script)
	if strings.TrimSpace(got) != "_signalbox 1 1" {
		t.Errorf("zsh has registered %q", got)
	}
}

// Every flag that the help lists is in every script, spelled as the shell wants it.
func TestCompletionHasAllFlags(t *testing.T) {
	scripts := make(map[string]string)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		text, err := os.ReadFile(completionScript(t, shell))
		if err != nil {
			t.Fatal(err)
		}
		scripts[shell] = string(text)
	}
	for _, command := range []string{"serve", "connect", "check"} {
		help := start(t, command, "--help")
		help.exit()
		text, _ := help.text()
		flags := 0
		for line := range strings.Lines(text) {
			name := deployFlag.FindString(strings.TrimSpace(line))
			if name == "" || !strings.HasPrefix(strings.TrimSpace(line), name) {
				continue
			}
			flags++
			for shell, spelled := range map[string]string{"bash": name, "zsh": name, "fish": "-l " + name[2:]} {
				if !regexp.MustCompile(spelled + `($|[^a-z-])`).MatchString(scripts[shell]) {
					t.Errorf("%s: %s of %s is missing", shell, name, command)
				}
			}
		}
		if flags == 0 {
			t.Errorf("%s --help lists no flag", command)
		}
	}
}
