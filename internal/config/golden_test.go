package config

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// testEnv is the environment of every file in testdata.
func testEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"HOME": "/home/ada", "GITHUB_TOKEN": "ghp_test", "CRM_TOKEN": "s3cret", "PORT": "9000", "EMPTY": "",
	}[name]
	return v, ok
}

// golden compares got with the file beside path.
func golden(t *testing.T, path, got string) {
	t.Helper()
	path += ".golden"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// inputs are the files of a folder that are no golden ones, at least min.
func inputs(t *testing.T, dir string, min int) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var in []string
	for _, path := range all {
		if !strings.HasSuffix(path, ".golden") {
			in = append(in, path)
		}
	}
	if len(in) < min {
		t.Fatalf("%d files in %s, at least %d should be there", len(in), dir, min)
	}
	return in
}

func TestGood(t *testing.T) {
	for _, path := range inputs(t, "good", 12) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, err := Load(path, testEnv)
			if err != nil {
				t.Fatal(err)
			}
			if f.Path != path {
				t.Errorf("Path is %q", f.Path)
			}
			f.Path = filepath.Base(path)
			got, err := json.MarshalIndent(f, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, path, string(got)+"\n")
		})
	}
}

func TestBad(t *testing.T) {
	for _, path := range inputs(t, "bad", 20) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f, err := Parse(filepath.Base(path), data, testEnv)
			if err == nil {
				t.Fatalf("no error; file is %+v", f)
			}
			checkErrors(t, err)
			if strings.Contains(err.Error(), "hush") {
				t.Error("the error repeats a value")
			}
			golden(t, path, err.Error()+"\n")
		})
	}
}

// checkErrors: every error of Parse is a list by line, with positions.
func checkErrors(t *testing.T, err error) {
	t.Helper()
	var all Errors
	var one *Error
	if !errors.As(err, &all) || !errors.As(err, &one) || len(all) == 0 {
		t.Fatalf("%T is no Errors", err)
	}
	line := 1
	for _, e := range all {
		if e.Line < line || e.Column < 1 || e.Msg == "" || e.File == "" {
			t.Errorf("misplaced or incomplete: %+v", e)
		}
		line = e.Line
	}
}
