package config

import (
	"path"
	"slices"
	"strings"
)

// commandWarnings are for programs that, called so, would not do as a server.
func (v *values) commandWarnings(s *Server, at string) {
	args := join(at, "args")
	switch name := program(s.Command); name {
	case "npx":
		if !hasFlag(ownFlags(s.Args, npxTakesValue), 'y', "--yes", "--no", "--no-install") {
			v.warn(args, "npx may wait for an answer; add -y")
		}
	case "docker", "podman", "nerdctl":
		if len(s.Args) == 0 || s.Args[0] != "run" {
			break
		}
		flags := ownFlags(s.Args[1:], dockerTakesValue)
		if !hasFlag(flags, 'i', "--interactive") {
			v.warn(args, "%s run closes its standard input without -i; add it", name)
		}
		if hasFlag(flags, 't', "--tty") {
			v.warn(args, "there is no terminal for %s run -t; remove it", name)
		}
		if hasFlag(flags, 'd', "--detach") {
			v.warn(args, "%s run -d leaves the server without input and output; remove it", name)
		}
	}
	if first, _, spaces := strings.Cut(s.Command, " "); spaces && !strings.ContainsAny(first, `/\`) {
		v.warn(join(at, "command"), "this is one program, never a shell line; put what follows it into args")
	}
}

// program is the base name of a command, on any system.
func program(command string) string {
	base := strings.ToLower(path.Base(strings.ReplaceAll(command, `\`, "/")))
	for _, ext := range []string{".exe", ".cmd"} {
		base = strings.TrimSuffix(base, ext)
	}
	return base
}

// ownFlags are a program's own flags: those before its first plain argument
// (a package, an image), of which the rest is another program's.
func ownFlags(args []string, takesValue func(flag string) bool) []string {
	var flags []string
	for i := 0; i < len(args) && strings.HasPrefix(args[i], "-") && args[i] != "--"; i++ {
		flags = append(flags, args[i])
		if takesValue(args[i]) {
			i++
		}
	}
	return flags
}

func npxTakesValue(flag string) bool {
	return slices.Contains([]string{"-p", "--package", "-c", "--call", "--registry", "--cache", "--prefix", "--userconfig", "-w", "--workspace"}, flag)
}

// dockerTakesValue: most flags of docker run do, and a group of letters does
// not but for its last.
func dockerTakesValue(flag string) bool {
	switch {
	case strings.Contains(flag, "="):
		return false
	case strings.HasPrefix(flag, "--"):
		return !slices.Contains([]string{"--rm", "--init", "--interactive", "--tty", "--detach", "--privileged",
			"--read-only", "--publish-all", "--no-healthcheck", "--oom-kill-disable", "--quiet", "--sig-proxy"}, flag)
	}
	return !strings.ContainsAny(flag[len(flag)-1:], "itdPq")
}

// hasFlag finds a flag by its letter, alone or in a group of some, or its name.
func hasFlag(flags []string, letter byte, names ...string) bool {
	for _, f := range flags {
		name, value, _ := strings.Cut(f, "=")
		switch {
		case value == "false":
		case strings.HasPrefix(f, "--"):
			if slices.Contains(names, name) {
				return true
			}
		case len(f) <= 4 && strings.IndexByte(f, letter) > 0:
			return true
		}
	}
	return false
}
