package auth

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const hashA, hashB = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

func TestNewKey(t *testing.T) {
	key, entry, err := NewKey("build.bot@ci", []string{"mcp:read", "x"})
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^sbx_[A-Za-z0-9_-]{43}$`).MatchString(key) {
		t.Errorf("key of the form %q", key[:4])
	}
	if strings.Contains(entry, key) || strings.Contains(entry, key[4:]) {
		t.Error("the entry holds the key")
	}
	var out bytes.Buffer
	if err := WriteKey(&out, key, entry); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitN(out.String(), "\n", 3)
	if len(lines) != 3 || lines[0] != key || lines[1] != "" || lines[2] != entry || !strings.HasSuffix(entry, "\n") {
		t.Errorf("printed %d lines in another form", len(lines))
	}
	again, _, _ := NewKey("build.bot@ci", nil)
	if again == key {
		t.Error("the same key twice")
	}
	for _, name := range []string{"", "a b", "a\nb", "a:b", "ä", strings.Repeat("a", 65)} {
		if _, _, err := NewKey(name, nil); err == nil {
			t.Errorf("name %q is taken", name)
		}
	}
	for _, scope := range []string{"", "a b", `a"b`, `a\b`, "a\n", "é"} {
		if _, _, err := NewKey("a", []string{scope}); err == nil {
			t.Errorf("scope %q is taken", scope)
		}
	}
}

func TestKeys(t *testing.T) {
	r := newRig(t, nil)
	for _, q := range []string{"Authorization", "X-API-Key"} {
		value := r.key
		if q == "Authorization" {
			value = "bearer " + value
		}
		p := r.accepted(request(q, value), "read")
		if p.Kind != KindKey || p.Subject != "ci" || p.Key() != "key/2:ci," || p.Claims() != nil {
			t.Errorf("%s: %+v", q, p)
		}
	}
	r.refused(403, reasonScope, request("X-API-Key", r.key), "write")
	r.refused(bad, reasonUnknownKey, request("X-API-Key", r.key+"x"))
	r.refused(bad, reasonUnknownKey, request("X-API-Key", r.key[:len(r.key)-1]))
	r.refused(bad, reasonUnknownKey, bearer(strings.ToLower(r.key)))
	text, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	hash := regexp.MustCompile(`sha256:[0-9a-f]+`).FindString(string(text))
	r.refused(bad, reasonUnknownKey, bearer(hash)) // who reads the file has no key
	r.refused(bad, reasonUnknownKey, bearer(strings.TrimPrefix(hash, "sha256:")))
}

func TestKeyFileGood(t *testing.T) {
	tests := map[string]struct {
		text string
		want int
	}{
		"one":                {"- name: a\n  hash: " + hashA, 1},
		"two, with scopes":   {"- {name: a, hash: '" + hashA + "', scopes: [x, 'y:z']}\n- name: b\n  hash: " + hashB + "\n  scopes:\n    - x\n", 2},
		"none":               {"[]", 0},
		"comments and CRLF":  {"# keys\r\n- name: a # one\r\n  hash: " + hashA + "\r\n", 1},
		"JSON":               {`[{"name":"a","hash":"` + hashA + `","scopes":[]}]`, 1},
		"upper-case digits":  {"- name: a\n  hash: sha256:" + strings.ToUpper(hashA[7:]), 1},
		"a document's start": {"---\n- name: a\n  hash: " + hashA, 1},
		"a quoted number":    {"- name: '123'\n  hash: " + hashA, 1},
	}
	for name, c := range tests {
		keys, err := parseKeyFile([]byte(c.text))
		if err != nil || len(keys) != c.want {
			t.Errorf("%s: %d keys, %v", name, len(keys), err)
		}
	}
}

func TestKeyFileBad(t *testing.T) {
	const good = "- name: a\n  hash: " + hashA + "\n"
	tests := map[string]struct{ text, says string }{
		"empty":                 {"", "one YAML list"},
		"a comment only":        {"# nothing\n", "one YAML list"},
		"a map":                 {"name: a\nhash: " + hashA, "line 1: a list of keys"},
		"a text":                {"keys", "line 1: a list of keys"},
		"two documents":         {good + "---\n" + good, "one YAML list"},
		"an unknown setting":    {good + "- name: b\n  hash: " + hashB + "\n  scope: [x]", `line 5: unknown setting "scope"`},
		"a setting in capitals": {"- Name: a\n  hash: " + hashA, `line 1: unknown setting "Name"`},
		"no name":               {"- hash: " + hashA, "line 1: a key needs both"},
		"no hash":               {good + "- name: b\n", "line 3: a key needs both"},
		"the key itself":        {"- name: a\n  hash: sbx_secret", "is not sha256:"},
		"a short hash":          {"- name: a\n  hash: sha256:abcd", "is not sha256:"},
		"no hex":                {"- name: a\n  hash: sha256:" + strings.Repeat("g", 64), "is not sha256:"},
		"another hash":          {"- name: a\n  hash: md5:" + strings.Repeat("a", 64), "is not sha256:"},
		"a name twice":          {good + "- name: a\n  hash: " + hashB, "line 3: the name of key \"a\" stands in line 1"},
		"a hash twice":          {good + "- name: b\n  hash: " + strings.Replace(hashA, "aaa", "AAA", 1), "line 3: the hash of key \"b\" stands in line 1"},
		"a setting twice":       {"- name: a\n  name: b\n  hash: " + hashA, "line 2"},
		"a name with a colon":   {"- name: 'a:b'\n  hash: " + hashA, "line 1: a name is"},
		"a number as name":      {"- name: 1\n  hash: " + hashA, "line 1: name must be text; quote it"},
		"null as name":          {"- name:\n  hash: " + hashA, "name must be text"},
		"scopes as text":        {"- name: a\n  hash: " + hashA + "\n  scopes: x y", "line 3: scopes must be a list"},
		"a scope with a space":  {"- name: a\n  hash: " + hashA + "\n  scopes: ['x y']", "line 3: a scope is"},
		"a number as scope":     {"- name: a\n  hash: " + hashA + "\n  scopes: [1]", "line 3: a scope must be text"},
		"an alias":              {"- &a\n  name: a\n  hash: " + hashA + "\n- *a\n", "a key is wanted"},
		"a merge":               {"- name: a\n  hash: " + hashA + "\n- <<: {name: b}\n  hash: " + hashB, "unknown setting"},
		"a list in the list":    {"- - name: a", "a key is wanted"},
		"no YAML":               {"- name: 'a\n", "YAML"},
		"a tab":                 {"- name: a\n\thash: " + hashA, "YAML"},
		"brackets":              {strings.Repeat("[", 100000), "nested too deep"},
		"too large":             {good + "#" + strings.Repeat("x", maxKeyFile), "1 MiB"},
	}
	for name, c := range tests {
		keys, err := parseKeyFile([]byte(c.text))
		if err == nil {
			t.Errorf("%s: taken, with %d keys", name, len(keys))
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: says %q, not %q", name, err, c.says)
		} else if strings.Contains(err.Error(), "aaaa") || strings.Contains(err.Error(), "sbx_secret") {
			t.Errorf("%s: the error holds a hash or key: %v", name, err)
		}
	}
}

func TestKeyFileReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		old := request("X-API-Key", r.key)
		r.accepted(old)
		key, entry, err := NewKey("new", nil)
		if err != nil {
			t.Fatal(err)
		}
		step := func() { time.Sleep(2 * keysPoll); synctest.Wait() }

		r.write(entry)
		step()
		r.refused(bad, reasonUnknownKey, old)
		r.accepted(request("X-API-Key", key))
		if r.logs.count("read anew") != 1 {
			t.Errorf("log:\n%s", r.logs)
		}

		for _, broken := range []string{"", entry + entry, "- name: x"} {
			r.write(broken)
			step()
			step()
			r.accepted(request("X-API-Key", key))
			if err := r.Reload(); err == nil {
				t.Error("Reload takes a broken file")
			}
		}
		if r.logs.count("is not taken") != 3 {
			t.Errorf("each mistake must be logged once:\n%s", r.logs)
		}
		os.Remove(r.file)
		step()
		r.accepted(request("X-API-Key", key))

		r.write("[]")
		step()
		r.refused(bad, reasonUnknownKey, request("X-API-Key", key))
		if r.logs.count("good again") != 1 {
			t.Errorf("log:\n%s", r.logs)
		}
		r.write(entry)
		if err := r.Reload(); err != nil { // at once
			t.Fatal(err)
		}
		r.accepted(request("X-API-Key", key))
	})
}

// TestKeyFileReplaced: a file is told from the one before also where size and
// time are the same.
func TestKeyFileReplaced(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Issuers = nil })
	age := time.Now().Add(-time.Hour)
	put := func(hash string) {
		t.Helper()
		next := r.file + ".new"
		if err := os.WriteFile(next, []byte("- name: a\n  hash: "+hash+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(next, age, age); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, r.file); err != nil {
			t.Fatal(err)
		}
		r.keys.poll()
	}
	put(hashA)
	first := r.keys.keys.Load()
	r.keys.poll()
	if r.keys.keys.Load() != first {
		t.Error("a file that did not change was read again")
	}
	put(hashB)
	if r.keys.keys.Load() == first {
		t.Error("a file that was replaced was not read")
	}
}
