package config

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// FuzzParse: no input panics, an error has its place within the file, and what
// is JSON means the same when it is read as YAML, which it also is.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"good", "bad"} {
		entries, err := os.ReadDir("testdata/" + dir)
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range entries {
			data, err := os.ReadFile("testdata/" + dir + "/" + e.Name())
			if err != nil {
				f.Fatal(err)
			}
			if len(data) < 2<<10 {
				f.Add(data)
			}
		}
	}
	f.Add([]byte("key:\n}"))
	f.Add([]byte(`{"mcpServers":{"a":{"command":"\ud83d\ude00\/","args":["",":","- ","'","#","\u2028","a\nb"]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4<<10 {
			return
		}
		file, err := Parse("f", data, testEnv)
		if err != nil {
			checkErrors(t, err)
			lines := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + 1
			if last := err.(Errors)[len(err.(Errors))-1]; last.Line > lines {
				t.Errorf("line %d of %d: %v", last.Line, lines, err)
			}
		}
		if !json.Valid(data) || !looksLikeJSON(data) {
			return
		}
		again, yerr := parse("f", data, testEnv, asYAML)
		if (err == nil) != (yerr == nil) {
			t.Fatalf("as JSON: %v\nas YAML: %v", err, yerr)
		}
		if err == nil && !reflect.DeepEqual(withoutLines(file), withoutLines(again)) {
			t.Errorf("as JSON: %+v\nas YAML: %+v", file, again)
		}
	})
}

func asYAML(data []byte) (*node, *Error) {
	text, err := clean(data)
	if err != nil {
		return nil, err
	}
	return parseYAML(text)
}

func withoutLines(f *File) *File {
	for i := range f.Servers {
		f.Servers[i].Line = 0
	}
	for k, s := range f.Settings {
		s.Line = 0
		f.Settings[k] = s
	}
	return f
}

// FuzzStrings: any text in a JSON string arrives as it is, by both readers.
func FuzzStrings(f *testing.F) {
	for _, s := range []string{"", "a: b", "- x", "'", "\"", "#", " lead", "tail ", "\n", "a\n\nb", "\t", "\r\n", "*a", "&a", "!x", "%", "@",
		"<&>", "\u2028", "\u00a0", "\U0001F600", "\\n", "\x7f", "null", "true", "1e5", "~", "{", "[", "?", "|", ">", "<<", "---", "...", "://", "/*"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, s string, indent bool) {
		s = strings.ToValidUTF8(s, "?")
		if len(s) > 1<<10 || strings.ContainsAny(s, "$\x00") {
			return
		}
		config := map[string]any{"mcpServers": map[string]any{"a": map[string]any{
			"command": "c" + s, "args": []string{s, "x" + s + "x", s}, "env": map[string]string{"K" + strings.ReplaceAll(s, "=", ""): s}}}}
		data, err := json.Marshal(config)
		if indent {
			data, err = json.MarshalIndent(config, "", "  ")
		}
		if err != nil {
			t.Fatal(err)
		}
		for name, syntax := range map[string]func([]byte) (*node, *Error){"JSON": read, "YAML": asYAML} {
			file, err := parse("f", data, nil, syntax)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, data)
			}
			got := file.Servers[0]
			if want := []string{s, "x" + s + "x", s}; got.Command != "c"+s || !reflect.DeepEqual(got.Args, want) ||
				got.Env["K"+strings.ReplaceAll(s, "=", "")] != s {
				t.Fatalf("%s: %q became %+v\n%s", name, s, got, data)
			}
		}
	})
}
