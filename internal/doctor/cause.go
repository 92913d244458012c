package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	missingModule = regexp.MustCompile(`(?:Cannot find (?:module|package) ['"]([^'"]+)['"]|ModuleNotFoundError: No module named ['"]([^'"]+)['"]|ImportError: No module named (\S+))`)
	missingFile   = regexp.MustCompile(`(?:can't open file ['"]?([^'":]+)['"]?: \[Errno 2\]|Unable to access jarfile (\S+)|Cannot find module ['"](/[^'"]+)['"]|(?:^|: )(?:cannot open|can't open) ['"]?([^'":]+)['"]?: No such file)`)
	missingRunner = regexp.MustCompile(`env: ['‘"]?([^'’":]+?)(\\r|\?)?['’"]?: No such file or directory`)
	notInShell    = regexp.MustCompile(`(?:^|: )(?:line )?\d*:? ?([A-Za-z0-9_./-]+): (?:command )?not found$`)
	noPackage     = regexp.MustCompile(`(?i)npm (?:error|ERR!) 404 .*['"]([^'"]+)['"] (?:is not in|could not be found)|E404.*['"]([^'"]+)['"]|([A-Za-z0-9._-]+) was not found in the package registry`)
	noVersion     = regexp.MustCompile(`(?i)No matching version found for (\S+?)\.?$`)
	noRegistry    = regexp.MustCompile(`(?i)(EAI_AGAIN|ENOTFOUND|ETIMEDOUT|ECONNREFUSED).*regist|regist.*(EAI_AGAIN|ENOTFOUND|ETIMEDOUT|ECONNREFUSED)|error sending request for url .*pypi|Failed to fetch: .*pypi`)
	portInUse     = regexp.MustCompile(`(?i)EADDRINUSE|address already in use`)
	noTTY         = regexp.MustCompile(`(?i)the input device is not a TTY|input is not a (tty|terminal)`)
	noDaemon      = regexp.MustCompile(`(?i)cannot connect to the docker daemon|failed to connect to the docker API`)

	wanted      = regexp.MustCompile(`(?i)\b(required|requires|missing|not set|must be set|must set|not provided|not defined|undefined|unset|is empty|please set|please provide|no value|not found|needs?)\b`)
	envName     = regexp.MustCompile(`\b[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9]\b`)
	envPhrase   = regexp.MustCompile("(?i:environment variables?|env(?:ironment)? var(?:iable)?s?)[:\\s]+[\"'`$]*([A-Z][A-Z0-9_]{2,})\\b|\\b([A-Z][A-Z0-9_]{2,})[\"'`]*\\s+(?i:environment variable|env var)")
	keyError    = regexp.MustCompile(`^KeyError: ['"]([A-Z][A-Z0-9_]*)['"]`)
	errorLine   = regexp.MustCompile(`^\s*(?:[\w.]*(?:Error|Exception)\b|(?:npm )?error\b|fatal\b|panic\b|FATAL\b|ERROR\b|Error\b)`)
	withoutNews = regexp.MustCompile(`^\s*(at |Node\.js v|npm (error|ERR!) (A complete log|code |\s*/)|File "|\.\.\.|\^+$|[{}\])];?$|Traceback|code: |requireStack)`)
)

// cause finds a reason that is known in what a process that ended has written.
func (x *exam) cause(e *evidence) *Finding {
	words := e.written()
	slices.Reverse(words) // what comes last is the cause of the end
	for _, known := range []func([]string) *Finding{x.missing, x.setting, x.surroundings} {
		if f := known(words); f != nil {
			return f
		}
	}
	return nil
}

// find returns the first group of pattern that matched in the first line that
// fits.
func find(lines []string, pattern *regexp.Regexp) (string, bool) {
	for _, line := range lines {
		if m := pattern.FindStringSubmatch(line); m != nil {
			for _, group := range m[1:] {
				if group != "" {
					return group, true
				}
			}
			return m[0], true
		}
	}
	return "", false
}

// missing: a program, a file or a package is not there.
func (x *exam) missing(words []string) *Finding {
	if m := firstMatch(words, missingRunner); m != nil {
		if m[2] != "" {
			return &Finding{"crlf-env", fmt.Sprintf("its first line ends with a carriage return, so that %s is not found under that name; give the file Unix line ends", inQuotes(m[1]))}
		}
		return &Finding{"runner-missing", fmt.Sprintf("its first line asks for %s, which is in no directory of the PATH that the server gets; install it, or set PATH with --env PATH=...", inQuotes(m[1]))}
	}
	if name, ok := find(words, missingFile); ok {
		return &Finding{"script-missing", "the file " + x.quote(name) + " does not exist; mend the path, or set --cwd if it is a relative one"}
	}
	if name, ok := find(words, missingModule); ok {
		if strings.HasPrefix(name, ".") {
			return &Finding{"module-missing", "its own file " + x.quote(name) + " is missing; build or install the server anew"}
		}
		return &Finding{"module-missing", "the module " + x.quote(name) + " is missing; install what the server depends on (npm install, pip install), in the environment that this command uses"}
	}
	if name, ok := find(words, notInShell); ok {
		return &Finding{"shell-not-found", "the program " + x.quote(name) + " that it calls is not found; install it, or set PATH with --env PATH=..."}
	}
	if name, ok := find(words, noPackage); ok {
		return &Finding{"package-missing", "the package " + x.quote(strings.TrimSuffix(name, "@*")) + " is not in the registry; mend its name, or log in to the registry that has it"}
	}
	if name, ok := find(words, noVersion); ok {
		return &Finding{"package-version", "the registry has no version " + x.quote(name) + "; name one that exists"}
	}
	return nil
}

// setting: it wants a variable of the environment.
func (x *exam) setting(words []string) *Finding {
	name := ""
	for _, line := range words {
		if m := keyError.FindStringSubmatch(line); m != nil {
			name = m[1]
			break
		}
		if !wanted.MatchString(line) {
			continue
		}
		if phrase, ok := find([]string{line}, envPhrase); ok {
			name = phrase
			break
		}
		if found := envName.FindString(line); found != "" && !strings.HasPrefix(found, "ERR_") && found != "MODULE_NOT_FOUND" {
			name = found
			break
		}
	}
	if name == "" {
		return nil
	}
	if _, set := x.o.LookupEnv(name); set {
		return &Finding{"env-not-passed", fmt.Sprintf("it needs the environment variable %s, which is set here and not passed on; add --pass-env %s (in a file: pass-env)", name, name)}
	}
	return &Finding{"env-missing", fmt.Sprintf("it needs the environment variable %s; set it with --env %s=..., or pass it on with --pass-env %s", name, name, name)}
}

// surroundings: the machine is not as it needs it.
func (x *exam) surroundings(words []string) *Finding {
	switch {
	case firstMatch(words, noRegistry) != nil:
		return &Finding{"registry-unreachable", "it cannot reach the package registry to install itself; check the network, or install the package before"}
	case firstMatch(words, portInUse) != nil:
		return &Finding{"port-in-use", "it wants to listen on a port that is in use, perhaps by an earlier run of itself; choose stdio by its options, or free the port"}
	case firstMatch(words, noTTY) != nil:
		return &Finding{"docker-tty", "it is started with a terminal (-t), and there is none; leave -t out and keep -i"}
	case firstMatch(words, noDaemon) != nil:
		return &Finding{"docker-daemon", "the Docker daemon is not running, or this user may not use it; start it, or set DOCKER_HOST with --pass-env DOCKER_HOST"}
	}
	return nil
}

func firstMatch(lines []string, pattern *regexp.Regexp) []string {
	for _, line := range lines {
		if m := pattern.FindStringSubmatch(line); m != nil {
			return m
		}
	}
	return nil
}

// lastWords is a clause with the line that tells most of why a process ended;
// empty where it said nothing.
func (x *exam) lastWords(e *evidence) string {
	words := e.written()
	best := ""
	for _, line := range slices.Backward(words) {
		if withoutNews.MatchString(line) {
			continue
		}
		if best == "" {
			best = line
		}
		if errorLine.MatchString(line) {
			best = line
			break
		}
	}
	if best == "" {
		return ""
	}
	return "; its last words: " + x.quote(best)
}
