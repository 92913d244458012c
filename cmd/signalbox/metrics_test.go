package main

import (
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// registry is that of a signalbox with everything turned on that has metrics.
func registry(t *testing.T) *prometheus.Registry {
	t.Helper()
	grammar, _, _, err := parse([]string{"serve", "--admin-listen", "127.0.0.1:0", "--audit-log", filepath.Join(t.TempDir(), "audit"),
		"--store", "redis://127.0.0.1:1/0", "--", "cat"}, streams{strings.NewReader(""), io.Discard, io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	c := &grammar.Serve
	specs, err := c.check()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := c.secrets()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := c.build(specs, keys, l, io.Discard, logs{slog.New(slog.DiscardHandler), new(slog.LevelVar)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return a.metrics
}

var (
	descText = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", .*variableLabels: \{([^}]*)\}\}$`)
	tableRow = regexp.MustCompile("(?m)^\\| `(signalbox_[a-z_]+)` \\| ([a-z_, ]*) ?\\| .+ \\|$")
)

// The table in docs/usage.md has every metric of Signalbox with its labels, and
// no other.
func TestMetricsAreDocumented(t *testing.T) {
	reg, descs := registry(t), make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		reg.Describe(descs)
	}()
	exported := make(map[string]string)
	for d := range descs {
		m := descText.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("not understood: %s", d)
		}
		if strings.HasPrefix(m[1], "signalbox_") {
			exported[m[1]] = m[2]
		}
	}
	text, err := os.ReadFile("../../docs/usage.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]string)
	for _, m := range tableRow.FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = strings.ReplaceAll(strings.TrimSpace(m[2]), ", ", ",")
	}
	if len(exported) < 30 {
		t.Errorf("only %d metrics", len(exported))
	}
	for _, name := range slices.Sorted(maps.Keys(exported)) {
		if labels, ok := documented[name]; !ok || labels != exported[name] {
			t.Errorf("%s with the labels {%s} is not in the table of docs/usage.md, or with others: {%s}", name, exported[name], labels)
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("docs/usage.md tells of %s, which there is not", name)
	}
}
