package child

import (
	"maps"
	"runtime"
	"slices"
	"strings"
)

// What a child inherits without being told. Everything else in the environment,
// secrets of the gateway among it, stays here.
var (
	baseNames    = []string{"PATH", "HOME", "USER", "LANG", "TMPDIR", "TZ"}
	basePrefixes = []string{"LC_", "XDG_"}
	// Without these, programs on Windows fail to start or to find their libraries.
	windowsNames = []string{
		"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "OS",
		"APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "ALLUSERSPROFILE", "PUBLIC",
		"USERPROFILE", "USERNAME", "USERDOMAIN", "HOMEDRIVE", "HOMEPATH", "TEMP", "TMP",
		"PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432",
		"COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)", "COMMONPROGRAMW6432",
		"PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS",
	}
)

// BaseEnv makes the environment of a child: a small safe base taken from environ,
// the variables of environ named in pass (those that are not set are left out),
// and set, which wins. The result is sorted and names no variable twice; on
// Windows names differ by more than case.
func BaseEnv(environ, pass []string, set map[string]string) []string {
	return baseEnv(envSource{environ, runtime.GOOS == "windows"}, pass, set)
}

type envSource struct {
	environ []string
	windows bool
}

// key is the name under which two spellings of a variable are the same.
func (s envSource) key(name string) string {
	if s.windows {
		return strings.ToUpper(name)
	}
	return name
}

func (s envSource) inherited(key string) bool {
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
	return slices.Contains(baseNames, key) ||
		slices.ContainsFunc(basePrefixes, hasPrefix) ||
		s.windows && slices.Contains(windowsNames, key)
}

func baseEnv(from envSource, pass []string, set map[string]string) []string {
	wanted := make(map[string]bool, len(pass))
	for _, name := range pass {
		wanted[from.key(name)] = true
	}
	env := make(map[string]string) // key → NAME=value
	for _, entry := range from.environ {
		name, _, ok := strings.Cut(entry, "=")
		key := from.key(name)
		if ok && name != "" && (from.inherited(key) || wanted[key]) {
			env[key] = entry
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		env[from.key(name)] = name + "=" + set[name]
	}
	return slices.Sorted(maps.Values(env))
}

// lookupEnv returns the value of a variable in a list, the last one winning as in
// os/exec.
func lookupEnv(env []string, name string) (value string, ok bool) {
	source := envSource{nil, runtime.GOOS == "windows"}
	for _, entry := range slices.Backward(env) {
		if n, v, found := strings.Cut(entry, "="); found && source.key(n) == source.key(name) {
			return v, true
		}
	}
	return "", false
}
