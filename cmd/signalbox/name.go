package main

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	notInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
	// packageName is how a package is named to a runner: [@scope/]name[@version].
	packageName = regexp.MustCompile(`^(@[A-Za-z0-9._-]+/)?[A-Za-z0-9._-]+(@[A-Za-z0-9._-]+)?$`)
)

// runners start a package that their first word names. plain are the options
// of theirs that have no value; behind any other option the next word may be
// its value, and secret, so that no name is taken from the command line then.
var (
	runners = []string{"npx", "uvx", "bunx", "pnpx"}
	plain   = []string{"-y", "--yes", "-q", "--quiet", "--prefer-offline", "--prefer-online", "--no-install"}
)

// serverName is a name for the one server of a command line: that of the
// package which a runner starts, else that of the command. It is shown in logs,
// metrics and paths.
func serverName(argv []string) string {
	name := strings.TrimSuffix(path.Base(strings.ReplaceAll(argv[0], `\\`, "/")), ".exe")
	if slices.Contains(runners, name) {
		if i := slices.IndexFunc(argv[1:], func(a string) bool { return !slices.Contains(plain, a) }); i >= 0 && !strings.HasPrefix(argv[1+i], "-") && packageName.MatchString(argv[1+i]) {
			name = path.Base(argv[1+i])
			if at := strings.LastIndexByte(name, '@'); at > 0 {
				name = name[:at] // the version
			}
		}
	}
	name = strings.Trim(notInName.ReplaceAllString(name, "-"), "-")
	if name == "" || name == "." || name == ".." {
		return "server"
	}
	return name[:min(len(name), 64)]
}

// mayAsk tells that npx would ask before it downloads, and wait for an answer
// that never comes.
func mayAsk(argv []string) bool {
	return path.Base(argv[0]) == "npx" && !slices.ContainsFunc(argv[1:], func(a string) bool {
		return a == "-y" || a == "--yes" || strings.HasPrefix(a, "--yes=")
	})
}
