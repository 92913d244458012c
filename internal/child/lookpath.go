package child

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// command resolves Args[0] as the child itself would: against the PATH in Env.
// Relative entries of PATH are passed over, since they would run whatever lies in
// the working directory.
func command(spec Spec) (*exec.Cmd, error) {
	if len(spec.Args) == 0 || spec.Args[0] == "" {
		return nil, &StartError{Server: spec.Name, Err: errors.New("no command given")}
	}
	cmd := &exec.Cmd{
		Path: spec.Args[0],
		Args: spec.Args,
		Env:  spec.Env,
		Dir:  spec.Dir,
	}
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would mean all of ours
	}
	if hasSeparator(spec.Args[0]) {
		return cmd, nil
	}
	path, _ := lookupEnv(spec.Env, "PATH")
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found := executable(filepath.Join(dir, spec.Args[0]), spec.Env); found != "" {
			cmd.Path = found
			return cmd, nil
		}
	}
	return nil, &StartError{
		Server:  spec.Name,
		Command: spec.Args[0],
		Path:    "PATH=" + path,
		Err:     exec.ErrNotFound,
	}
}

// Find looks for the command as Start would, starts nothing, and returns the path
// of the file. Its error is a *StartError.
func (s Spec) Find() (string, error) {
	cmd, err := command(s)
	if err != nil {
		return "", err
	}
	path := cmd.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Dir, path)
	}
	if _, err := os.Stat(path); err != nil {
		return "", &StartError{Server: s.Name, Command: s.Args[0], Err: errors.Unwrap(err)}
	}
	return path, nil
}

func hasSeparator(name string) bool {
	return strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator)
}

// startError words a failed start. The path in an error of the fork repeats the
// command, and a missing directory or interpreter looks like a missing command.
func startError(spec Spec, cmd *exec.Cmd, err error) error {
	start := &StartError{Server: spec.Name, Command: spec.Args[0], Err: err}
	var at *fs.PathError
	if !errors.As(err, &at) || at.Op != "fork/exec" {
		return start
	}
	start.Err = at.Err
	if spec.Dir != "" {
		if _, err := os.Stat(spec.Dir); err != nil {
			start.Err = &fs.PathError{Op: "chdir", Path: spec.Dir, Err: errors.Unwrap(err)}
			return start
		}
	}
	path := cmd.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(spec.Dir, path)
	}
	if _, err := os.Stat(path); err == nil && errors.Is(at, fs.ErrNotExist) {
		start.Err = interpreterError{at.Err}
	}
	return start
}

type interpreterError struct{ error }

func (e interpreterError) Error() string {
	return "the interpreter it names (first line, or loader) does not exist: " + e.error.Error()
}

func (e interpreterError) Unwrap() error { return e.error }
