package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// tree makes the files of a release at some time, in a folder of its own, and
// goes there.
func tree(t *testing.T, when time.Time) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, mode := range map[string]os.FileMode{"signalbox": 0o700, "README.md": 0o600, "completions/b": 0o600, "completions/a": 0o660} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("text of "+name), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, when, when); err != nil {
			t.Fatal(err)
		}
	}
}

var packed = []string{
	"v/README.md -rw-r--r-- text of README.md",
	"v/completions/a -rw-r--r-- text of completions/a",
	"v/completions/b -rw-r--r-- text of completions/b",
	"v/signalbox -rwxr-xr-x text of signalbox",
}

func TestSameFilesSameBytes(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	for _, name := range []string{"a.tar.gz", "a.zip"} {
		var first []byte
		for i := range 2 {
			tree(t, time.Unix(1_600_000_000+int64(i)*1000, 0))
			args := []string{name, "v", "signalbox", "completions", "README.md"}
			if i == 1 {
				args = []string{name, "v", "README.md", "signalbox", "completions"}
			}
			if err := run(args); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if i == 1 && !bytes.Equal(first, got) {
				t.Errorf("%s differs by the files' times or their order", name)
			}
			first = got
		}
		if got := listed(t, name, first); !slices.Equal(got, packed) {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

// listed is name, mode and text of each file, and fails for a time that is not 1700000000.
func listed(t *testing.T, name string, archive []byte) (list []string) {
	t.Helper()
	add := func(name string, mode os.FileMode, when time.Time, r io.Reader) {
		text, err := io.ReadAll(r)
		if err != nil || when.Unix() != 1_700_000_000 {
			t.Errorf("%s: time %v, %v", name, when, err)
		}
		list = append(list, fmt.Sprintf("%s %v %s", name, mode, text))
	}
	if filepath.Ext(name) == ".zip" {
		zr, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range zr.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(f.Name, f.Mode(), f.Modified, r)
		}
		return list
	}
	zr, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		add(h.Name, h.FileInfo().Mode(), h.ModTime, tr)
	}
}

func TestErrors(t *testing.T) {
	tree(t, time.Now())
	for _, args := range [][]string{nil, {"a.zip", "v"}, {"a.zip", "v", "nowhere"}, {"nowhere/a.zip", "v", "signalbox"}} {
		if run(args) == nil {
			t.Errorf("%q is no error", args)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "today")
	if run([]string{"a.zip", "v", "signalbox"}) == nil {
		t.Error("SOURCE_DATE_EPOCH=today is no error")
	}
}
