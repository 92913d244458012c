package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestHeaderFile(t *testing.T) {
	t.Setenv("TOKEN", "s3cret")
	path := filepath.Join(t.TempDir(), "headers")
	write := func(text string) *remoteFlags {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return &remoteFlags{Header: []string{"X-A: flag"}, HeaderFile: []string{path}}
	}
	h, err := write("# a comment\n\nX-A: file\r\nAuthorization: Bearer ${TOKEN}\n").headers()
	if err != nil || !reflect.DeepEqual(h["X-A"], []string{"flag", "file"}) || h.Get("Authorization") != "Bearer s3cret" {
		t.Errorf("%v, %v", h, err)
	}
	for text, want := range map[string]string{"X-A: b\nnonsense\n": ":2", "X-A: ${NOT_SET_ANYWHERE}": "NOT_SET_ANYWHERE", "Mcp-Session-Id: x": "Mcp-Session-Id"} {
		if _, err := write(text).headers(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := (&remoteFlags{HeaderFile: []string{"/nowhere/at/all"}}).headers(); err == nil || !strings.Contains(err.Error(), "--header-file") {
		t.Errorf("%v", err)
	}
}
