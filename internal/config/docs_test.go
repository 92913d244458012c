package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docsPath is the page for users. Its part below the marker is this table.
const docsPath = "../../docs/configuration.md"

const docsMarker = "<!-- The tables below are written by: go test ./internal/config -run TestDocumentation -update -->\n"

func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	head, tables, found := strings.Cut(string(page), docsMarker)
	if !found {
		t.Fatalf("no marker in %s", docsPath)
	}
	want := keyTables()
	if *update {
		if err := os.WriteFile(docsPath, []byte(head+docsMarker+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if tables != want {
		t.Errorf("%s is not up to date; run go test ./internal/config -run TestDocumentation -update", docsPath)
	}
}

func keyTables() string {
	var b strings.Builder
	for _, scope := range []struct{ scope, title, intro string }{
		{ScopeFile, "At the top", "Each is a flag of `serve` of the same name; the flag and its environment variable win over the file."},
		{ScopeAuth, "Below `auth`", "The same as the top-level keys `auth-keys`, `auth-issuer`, `auth-audience` and `auth-scope`."},
		{ScopeServer, "Below `mcpServers.NAME`", "One server."},
		{ScopeAccess, "Below `mcpServers.NAME.access`", "A list of rules, each for those who have everything that it names. Without authorization nobody has anything."},
		{ScopeOAuth, "Below `mcpServers.NAME.client-credentials`", "The token is kept until shortly before it runs out."},
		{ScopeTools, "Below `mcpServers.NAME.tools`", "Patterns are matched with the whole name of a tool."},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| key | value | default | meaning |\n|---|---|---|---|\n", scope.title, scope.intro)
		for _, k := range Keys() {
			if k.Scope != scope.scope || k.Use != Acts {
				continue
			}
			name := "`" + k.Key + "`"
			for _, a := range k.Aliases {
				name += ", `" + a + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, cell(k.Type), cell(k.Default), cell(k.Meaning))
		}
		others(&b, scope.scope)
	}
	return b.String()
}

// others are the keys that do not act, by what becomes of them.
func others(b *strings.Builder, scope string) {
	for _, use := range []struct {
		use   Use
		title string
	}{{Ignored, "Accepted and without meaning here, named once in the log"}, {Warned, "Accepted with a warning"}, {Refused, "Refused, with what to do instead"}} {
		var order []string
		names := map[string][]string{}
		for _, k := range Keys() {
			if k.Scope != scope || k.Use != use.use {
				continue
			}
			if names[k.Meaning] == nil {
				order = append(order, k.Meaning)
			}
			names[k.Meaning] = append(names[k.Meaning], "`"+k.Key+"`")
		}
		if len(order) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n%s:\n\n", use.title)
		for _, meaning := range order {
			fmt.Fprintf(b, "- %s: %s\n", strings.Join(names[meaning], ", "), strings.TrimSuffix(meaning, "."))
		}
	}
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
