package config

import (
	"errors"
	"regexp"
	"strings"
)

// Expand puts the values of environment variables into s: ${NAME},
// ${NAME:-default} where NAME may be unset or empty, and ${env:NAME}, which is
// VS Code's way to write the first. $$ is one dollar sign, so $${NAME} stands
// for itself; any other dollar sign is left alone. A name that is not set is an
// error. Errors name variables, never the rest of s.
func Expand(s string, env Lookup) (string, error) {
	out, bad := expand(s, env)
	if bad == nil {
		return out, nil
	}
	if bad.hint != "" {
		return "", errors.New(bad.msg + "; " + bad.hint)
	}
	return "", errors.New(bad.msg)
}

// problem is why a text cannot be expanded.
type problem struct{ msg, hint string }

func expand(s string, env Lookup) (string, *problem) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			b.WriteString(s)
			return b.String(), nil
		}
		b.WriteString(s[:i])
		switch s[i+1] {
		case '$':
			b.WriteByte('$')
			s = s[i+2:]
		case '{':
			end := strings.IndexByte(s[i:], '}')
			if end < 0 {
				return "", &problem{"a ${ is not closed", "write $${ for these characters themselves"}
			}
			v, bad := variable(s[i+2:i+end], env)
			if bad != nil {
				return "", bad
			}
			b.WriteString(v)
			s = s[i+end+1:]
		default:
			b.WriteByte('$')
			s = s[i+1:]
		}
	}
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// variable is the value of what stands between the braces.
func variable(body string, env Lookup) (string, *problem) {
	body = strings.TrimPrefix(body, "env:")
	name, def, hasDefault := strings.Cut(body, ":-")
	if !variableName.MatchString(name) {
		return "", foreign(name)
	}
	if strings.Contains(def, "${") {
		return "", &problem{"the default of ${" + name + ":-...} holds another variable", "write a plain default"}
	}
	v, ok := env(name)
	switch {
	case hasDefault && v == "":
		return def, nil
	case ok:
		return v, nil
	}
	bad := &problem{"the environment variable " + name + " is not set", "set it, or write ${" + name + ":-default}"}
	switch name {
	case "workspaceFolder", "workspaceRoot", "workspaceFolderBasename", "userHome", "cwd", "pathSeparator", "execPath":
		bad = &problem{"${" + name + "} is known to an editor only", "write the path itself, or a variable as ${HOME}"}
	}
	return "", bad
}

// foreign says why a name is none of an environment variable.
func foreign(name string) *problem {
	prefix, _, ok := strings.Cut(name, ":")
	switch {
	case ok && prefix == "input":
		return &problem{"${input:...} asks the user of an editor, and nobody can be asked here", "set an environment variable and write ${NAME}"}
	case ok && (prefix == "file" || prefix == "command" || prefix == "config" || prefix == "workspaceFolder"):
		return &problem{"${" + prefix + ":...} is known to an editor only", "set an environment variable and write ${NAME}"}
	}
	return &problem{"a ${...} holds no name of an environment variable", "write ${NAME} or ${NAME:-default}, or $${ for these characters themselves"}
}
