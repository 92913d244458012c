package config

import (
	"fmt"
	"io"
	"os"
)

// MaxSize is the largest file that Load reads.
const MaxSize = 1 << 20

// File is what a configuration file says.
type File struct {
	Path    string
	Servers []Server // in the file's order
	// Settings are the top-level keys that are flags of serve, by the flag's
	// name ("session-idle"). Their form is checked; what they mean is the
	// command line's to say. Keys below auth: are here as "auth-keys" and so on.
	Settings map[string]Setting
	// Ignored are the paths of keys that other products know and that mean
	// nothing here, as mcpServers.crm.alwaysAllow.
	Ignored []string
	// Warnings are for what is allowed and probably not meant. Each begins with
	// the path of its key.
	Warnings []string
}

// Setting is the text of one top-level key, variables expanded. A list gives
// several values, everything else one.
type Setting struct {
	Values []string
	Line   int
}

// Server is one entry of mcpServers. The values of a disabled one are as they
// are written: variables are not expanded, and it may lack what others need.
type Server struct {
	Name     string // [A-Za-z0-9._-]{1,64}, not . or ..
	Line     int
	Disabled bool

	// Type is "stdio" for a command; for a URL "http" (Streamable HTTP), "sse"
	// (HTTP+SSE, revision 2024-11-05) or "" where the transport is to be found
	// by asking the server.
	Type string

	Command string
	Args    []string
	Env     map[string]string
	PassEnv []string
	Cwd     string

	URL            string            // http or https, with a host, without credentials
	Headers        map[string]string // names are unique in any case of letters
	Endpoints      []string          // scheme and host only
	DNS            string            // scheme and host only
	ForwardHeaders []string

	Isolation string // "auto", "session" or "shared"; "" is the flag's
	Era       string // "auto", "legacy" or "modern"; "" is auto
	OnLost    string // "end" or "reinitialize"; "" is end

	Tools *Filter // nil: all

	// Access says who may use what; the first rule that fits decides. nil:
	// whoever is let in may use all of it.
	Access []Rule

	Credentials  *Credentials      // how Signalbox logs in to it; nil: not at all
	ClaimHeaders map[string]string // headers sent to it, each from a claim of the client's token
	ClaimEnv     map[string]string // environment of a session's own process, likewise
	HeaderEnv    map[string]string // the same, each from a header of the client's initialize

	// Limits are by the flag's name: start-timeout, call-timeout, ... Their form
	// is checked: durations and counts as the flag takes them.
	Limits map[string]string
}

// Rule is for those who have everything that it names. What it names nothing of
// does not matter.
type Rule struct {
	Keys      []string          // names of static keys, one of which it must be
	Subjects  []string          // of tokens, likewise
	Scopes    []string          // all of them
	Claims    map[string]string // of the token: this value, or a list with it
	Tools     *Filter           // nil: all
	Prompts   *Filter
	Resources *Filter // by URI
}

// Credentials are those of an OAuth client (RFC 6749, section 4.4).
type Credentials struct {
	TokenURL, ClientID, ClientSecret, Audience string
	Scopes                                     []string
}

// Lookup tells the value of an environment variable, as os.LookupEnv does.
type Lookup = func(name string) (string, bool)

// Load reads the file at path. An error of its content is an Errors; another
// one is of the file system.
func Load(path string, env Lookup) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("config file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("config file: %w", err)
	}
	return Parse(path, data, env)
}

// Parse reads data, which is the content of the file called name. Its error is
// an Errors.
func Parse(name string, data []byte, env Lookup) (*File, error) {
	return parse(name, data, env, read)
}

// parse takes the reader of the syntax, so that a test can force one.
func parse(name string, data []byte, env Lookup, syntax func([]byte) (*node, *Error)) (*File, error) {
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	r := &reader{env: env, file: &File{Path: name, Settings: map[string]Setting{}}}
	root, err := syntax(data)
	if err != nil {
		r.errs = append(r.errs, err)
	} else {
		r.duplicates(root, "")
		r.top(root)
	}
	if len(r.errs) > 0 {
		return nil, r.errs.finish(name)
	}
	return r.file, nil
}

// reader collects what a tree of nodes says, and what is wrong with it.
type reader struct {
	env  Lookup
	file *File
	errs Errors
}

// fail notes a mistake; the caller may add a hint to it.
func (r *reader) fail(at pos, path, format string, args ...any) *Error {
	e := &Error{Line: at.line, Column: at.col, Path: path, Msg: fmt.Sprintf(format, args...)}
	r.errs = append(r.errs, e)
	return e
}

func (r *reader) warn(path, format string, args ...any) {
	r.file.Warnings = append(r.file.Warnings, path+": "+fmt.Sprintf(format, args...))
}
