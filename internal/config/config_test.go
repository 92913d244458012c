package config

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"listen", "admin-listen", "session-idle", "session-max-age", "env", "url", "tools", "max-sessions", "max-processes"}
	for word, want := range map[string]string{
		"lisen": "listen", "listne": "listen", "Listen": "listen", "sessionIdle": "session-idle", "session_idle": "session-idle",
		"enviroment": "env", "environment": "env", "tool": "tools", "urls": "url", "max-session": "max-sessions",
		"session": "session-idle", "zzz": "", "": "", "x": "", "-": "", strings.Repeat("listen", 1000): "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", word, got, want)
		}
	}
	if got := Nearest("listen", nil); got != "" {
		t.Errorf("Nearest of nothing = %q", got)
	}
}

func TestExpand(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "plain": "plain", "${HOME}": "/home/ada", "a${HOME}b${PORT}c": "a/home/adab9000c",
		"${env:PORT}": "9000", "${X:-d}": "d", "${X:-}": "", "${EMPTY}": "", "${EMPTY:-d}": "d", "${PORT:-d}": "9000",
		"${env:X:-d e}": "d e", "${X:-a:-b}": "a:-b", "${X:-a$b}": "a$b",
		"$HOME": "$HOME", "$": "$", "a$": "a$", "$$": "$", "$$$": "$$", "$$$$": "$$", "$${HOME}": "${HOME}", "$$${PORT}": "$9000",
		"}{": "}{", "$(x)": "$(x)", "$1 ${PORT}$": "$1 9000$", "é${PORT}ü": "é9000ü",
	} {
		got, err := Expand(in, testEnv)
		if err != nil || got != want {
			t.Errorf("Expand(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"hush ${X}":          "the environment variable X is not set; set it, or write ${X:-default}",
		"${":                 "a ${ is not closed; write $${ for these characters themselves",
		"${a hush}":          "a ${...} holds no name of an environment variable; write ${NAME} or ${NAME:-default}, or $${ for these characters themselves",
		"${input:hush}":      "${input:...} asks the user of an editor, and nobody can be asked here; set an environment variable and write ${NAME}",
		"${workspaceFolder}": "${workspaceFolder} is known to an editor only; write the path itself, or a variable as ${HOME}",
	} {
		got, err := Expand(in, testEnv)
		if err == nil || err.Error() != want {
			t.Errorf("Expand(%q) = %q, %v, want error %q", in, got, err, want)
		}
	}
}

// What a variable holds is not expanded again.
func TestExpandOnce(t *testing.T) {
	env := func(string) (string, bool) { return "$$ ${HOME}", true }
	if got, err := Expand("${A}", env); err != nil || got != "$$ ${HOME}" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestForms(t *testing.T) {
	for typ, texts := range map[string]struct{ good, bad string }{
		typeDuration:         {"300ms 20s 2h 1h30m 0.5s", "0 0s -1s 20 1.5 s x 2d 1e3"},
		typeDurationOrZero:   {"0 0s 20s", "-1s 20 x"},
		typeTimeout:          {"60 0.5 90s 10m 007", "0 0s -1 -1s x 1e3 1_000"},
		typeSize:             {"1 4MiB 64KiB 2GiB 1048576", "0 -1 4MB 4mib 1.5MiB MiB 9999999999999GiB 1e6"},
		typeCount:            {"1 1024", "0 -1 1.5 x 1_000 0x10 99999999999999999999"},
		typeCountOrZero:      {"0 1", "-1 x"},
		typeBool:             {"true false", "yes True 1"},
		"end|reinitialize":   {"end reinitialize", "End restart |"},
		typeString:           {"anything", ""},
		"auto|legacy|modern": {"auto", "auto|legacy"},
	} {
		for _, s := range strings.Fields(texts.good) {
			if wrong := form(typ, s); wrong != "" {
				t.Errorf("%s %q: %s", typ, s, wrong)
			}
		}
		for _, s := range strings.Fields(texts.bad) {
			if form(typ, s) == "" {
				t.Errorf("%s %q passes", typ, s)
			}
		}
	}
}

// Keys is a table without contradictions, and every key of it has its effect.
func TestKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if k.Meaning == "" || k.Type == "" || k.Use == "" {
			t.Errorf("incomplete: %+v", k)
		}
		for _, name := range append([]string{k.Key}, k.Aliases...) {
			if id := k.Scope + " " + plain(name); seen[id] && plain(name) != plain(k.Key) || seen[k.Scope+" "+name] {
				t.Errorf("%s stands twice", id)
			}
			seen[k.Scope+" "+name], seen[k.Scope+" "+plain(name)] = true, true
		}
	}
	for word, key := range synonyms {
		if word != plain(word) || !slices.ContainsFunc(Keys(), func(k KeyDoc) bool { return k.Key == key && k.Use == Acts }) {
			t.Errorf("synonym %s: %s", word, key)
		}
	}
	for _, key := range limitKeys {
		if !slices.ContainsFunc(serverKeys, func(k KeyDoc) bool { return k.Key == key }) {
			t.Errorf("limit %s is no key", key)
		}
	}
	sample := map[string]string{typeString: `"x"`, typeOneOrMore: `["x"]`, typeBool: "true", typeCount: "7", typeCountOrZero: "7",
		typeDuration: `"7s"`, typeDurationOrZero: `"7s"`, typeSize: "7"}
	for _, k := range fileKeys {
		value := sample[k.Type]
		if first, _, ok := strings.Cut(k.Type, "|"); ok {
			value = `"` + first + `"`
		}
		for _, name := range append([]string{k.Key, camel(k.Key)}, k.Aliases...) {
			if k.Type == typeObject {
				continue
			}
			f, err := Parse("f", []byte(`{"`+name+`": `+value+`}`), nil)
			if err != nil || !reflect.DeepEqual(f.Settings[k.Key], Setting{[]string{strings.Trim(value, `[]"`)}, 1}) {
				t.Errorf("%s: %+v, %v", name, f, err)
			}
		}
	}
}

// Each key of a server changes what is read.
func TestServerKeysAct(t *testing.T) {
	values := map[string]string{"type": `"http"`, "disabled": "true", "enabled": "false", "args": `["a"]`, "env": `{"A": "b"}`,
		"pass-env": `"A"`, "cwd": `"d"`, "httpUrl": `"http://h/"`, "headers": `{"A": "b"}`, "endpoints": `"http://h"`,
		"dns": `"http://h"`, "forward-header": `"A"`, "isolation": `"shared"`, "era": `"modern"`, "on-lost": `"reinitialize"`,
		"tools": `["t"]`, "disabledTools": `["t"]`, "includeTools": `["t"]`, "access": `[{"keys": "k"}]`,
		"client-credentials": `{"token-url": "http://h/t", "client-id": "i", "client-secret": "s"}`, "claim-headers": `{"A": "b"}`, "claim-env": `{"A": "b"}`, "header-env": `{"A": "b"}`}
	for _, k := range serverKeys {
		base := `"command": "c"`
		switch k.Key {
		case "command", "url":
			continue
		case "type", "headers", "endpoints", "dns", "forward-header", "on-lost", "client-credentials", "claim-headers":
			base = `"url": "http://h/mcp"`
		case "httpUrl":
			base = `"type": "http"`
		}
		value := values[k.Key]
		switch k.Type {
		case typeDuration, typeDurationOrZero:
			value = `"9s"`
		case typeCount, typeCountOrZero, typeSize, typeTimeout:
			value = "9"
		}
		plainFile, _ := Parse("f", []byte(`{"mcpServers": {"s": {`+base+`}}}`), nil)
		f, err := Parse("f", []byte(`{"mcpServers": {"s": {`+base+`, "`+camel(k.Key)+`": `+value+`}}}`), nil)
		if err != nil || plainFile != nil && reflect.DeepEqual(f.Servers, plainFile.Servers) {
			t.Errorf("%s: %+v, %v", k.Key, f, err)
		}
	}
}

// A disabled server may lack what others need, and still cannot be misspelt.
func TestDisabled(t *testing.T) {
	f, err := Parse("f", []byte(`{"mcpServers": {"s": {"disabled": true, "env": {"A": "${NOPE}"}, "timeout": "${NOPE}", "endpoints": ["${NOPE}"]}}}`), nil)
	if err != nil || !f.Servers[0].Disabled || f.Servers[0].Env["A"] != "${NOPE}" {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err = Parse("f", []byte(`{"mcpServers": {"s": {"disabled": true, "comand": "x"}}}`), nil); err == nil {
		t.Error("a misspelt key passes")
	}
}

// Values from the environment are checked, and never repeated.
func TestNoSecretInErrors(t *testing.T) {
	env := func(string) (string, bool) { return "hush\nhush ${", true }
	_, err := Parse("f", []byte(`
max-sessions: ${A}
session-idle: ${A}
log-level: ${A}
mcpServers:
  a: {url: "${A}", headers: {X: "${A}"}, type: "${A}", endpoints: "${A}", timeout: "${A}", forward-header: "${A}"}
  b: {command: "${A}", env: {A: "${A}"}, pass-env: ["${A}="], max-message: "${A}", isolation: "${A}", disabled: "${A}"}
`), env)
	if err == nil || len(err.(Errors)) < 12 || strings.Contains(err.Error(), "hush") {
		t.Errorf("%v", err)
	}
	// A URL may hold one in its path and query, wherever it is wrong.
	_, err = Parse("f", []byte(`mcpServers: {a: {url: "https://h:hush/hush?hush"}, b: {url: "ht!tp://hush"}}`), nil)
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("%v", err)
	}
}

// A number in an error is what the file has, unless it comes from a variable.
func TestNumberFromVariable(t *testing.T) {
	env := func(string) (string, bool) { return "31337", true }
	_, err := Parse("f", []byte("call-timeout: ${A}\n"), env)
	if err == nil || strings.Contains(err.Error(), "31337") {
		t.Errorf("%v", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "missing"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Load(dir, nil); err == nil {
		t.Error("a folder passes")
	}
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, bytes.Repeat([]byte(" "), MaxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	var e *Error
	if _, err := Load(big, nil); !errors.As(err, &e) || e.Line != 1 {
		t.Errorf("big file: %v", err)
	}
}

// JSON and YAML of the same content are the same File.
func TestBothSyntaxes(t *testing.T) {
	for _, path := range inputs(t, "good", 12) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := clean(data)
		if !looksLikeJSON(text) || bytes.Contains(text, []byte("//")) || bytes.Contains(text, []byte("/*")) {
			continue
		}
		asJSON, err1 := parse(path, data, testEnv, read)
		inYAML, err2 := parse(path, data, testEnv, asYAML)
		if err1 != nil || err2 != nil || !reflect.DeepEqual(asJSON, inYAML) {
			t.Errorf("%s: %v, %v\n%+v\n%+v", path, err1, err2, asJSON, inYAML)
		}
	}
}

func TestErrorsSortAndUnwrap(t *testing.T) {
	_, err := Parse("f.yaml", []byte("b: 1\nmcpServers: {x: {comand: y}}\na: 1\n"), nil)
	checkErrors(t, err)
	if n := len(err.(Errors)); n != 3 {
		t.Errorf("%d errors: %v", n, err)
	}
	var e *Error
	if !errors.As(err, &e) || e.File != "f.yaml" || e.Line != 1 || e.Column != 1 || e.Path != "b" || e.Msg != "unknown key" {
		t.Errorf("%+v", e)
	}
}
