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

func hasSeparator(name string) bool {
	return strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator)
}

// startError words a failed start. The path in an error of the fork itself repeats
// the command, and a missing interpreter looks like a missing file.
func startError(spec Spec, cmd *exec.Cmd, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) && at.Op == "fork/exec" {
		err = at.Err
	}
	if errors.Is(err, fs.ErrNotExist) && at != nil && at.Op == "fork/exec" {
		path := cmd.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(spec.Dir, path)
		}
		if _, statErr := os.Stat(path); statErr == nil {
			err = interpreterError{err}
		}
	}
	return &StartError{Server: spec.Name, Command: spec.Args[0], Err: err}
}

type interpreterError struct{ error }

func (e interpreterError) Error() string {
	return "the interpreter it names (first line, or loader) does not exist: " + e.error.Error()
}

func (e interpreterError) Unwrap() error { return e.error }
