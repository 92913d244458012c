package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/goccy/go-yaml"
)

const chartDir = deployDir + "/helm/signalbox"

// chartFuncs are those functions of Helm's templates that the chart uses. Where
// helm itself is installed, TestChartByHelm compares the two.
func chartFuncs(t *template.Template) template.FuncMap {
	indented := func(n int, s string) string {
		pad := strings.Repeat(" ", n)
		return pad + strings.ReplaceAll(s, "\n", "\n"+pad)
	}
	return template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var b strings.Builder
			err := t.ExecuteTemplate(&b, name, data)
			return b.String(), err
		},
		"toYaml": func(v any) (string, error) {
			text, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"nindent":    func(n int, s string) string { return "\n" + indented(n, s) },
		"quote":      func(v any) string { return fmt.Sprintf("%q", fmt.Sprint(v)) },
		"trunc":      func(n int, s string) string { return s[:min(n, len(s))] },
		"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
		"contains":   func(part, s string) bool { return strings.Contains(s, part) },
		"fail":       func(message string) (string, error) { return "", errors.New(message) },
		"int": func(v any) int {
			n, _ := v.(uint64)
			return int(n)
		},
		"default": func(otherwise, v any) any {
			if truth, _ := template.IsTrue(v); truth {
				return v
			}
			return otherwise
		},
		"ternary": func(yes, no any, which bool) any {
			if which {
				return yes
			}
			return no
		},
	}
}

// merged is base with what over says.
func merged(base, over map[string]any) map[string]any {
	all := maps.Clone(base)
	for k, v := range over {
		below, isMap := v.(map[string]any)
		if old, both := all[k].(map[string]any); isMap && both {
			v = merged(old, below)
		}
		all[k] = v
	}
	return all
}

func readYAML(t *testing.T, path string) (root map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, &root)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return root
}

// renderChart is what `helm template mcp` makes of the chart with these values.
func renderChart(t *testing.T, values map[string]any) ([]document, error) {
	t.Helper()
	chart := readYAML(t, chartDir+"/Chart.yaml")
	data := map[string]any{
		"Values":  merged(readYAML(t, chartDir+"/values.yaml"), values),
		"Release": map[string]any{"Name": "mcp", "Namespace": "tools", "Service": "Helm"},
		"Chart":   map[string]any{"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"]},
	}
	files, err := filepath.Glob(chartDir + "/templates/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates: %v", err)
	}
	set := template.New("").Option("missingkey=zero")
	set.Funcs(chartFuncs(set))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := set.New(filepath.Base(file)).Parse(string(text)); err != nil {
			t.Fatal(err)
		}
	}
	var docs []document
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "_") {
			continue
		}
		var b bytes.Buffer
		if err := set.ExecuteTemplate(&b, name, data); err != nil {
			return nil, err
		}
		if filepath.Ext(name) == ".yaml" {
			docs = append(docs, documents(t, name, b.Bytes())...)
		}
	}
	return docs, nil
}

// documents parses the YAML documents of a text; empty ones are left out.
func documents(t *testing.T, file string, text []byte) (docs []document) {
	t.Helper()
	for _, one := range bytes.Split(append([]byte("\n"), text...), []byte("\n---\n")) {
		var root map[string]any
		if err := yaml.Unmarshal(append(bytes.TrimRight(one, "\n"), '\n'), &root); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, one)
		}
		if len(root) > 0 {
			docs = append(docs, document{file, root})
		}
	}
	return docs
}

// at is the value below v under keys and indices, nil where there is none.
func at(v any, path ...any) any {
	for _, step := range path {
		switch below := v.(type) {
		case map[string]any:
			v = below[fmt.Sprint(step)]
		case []any:
			i, _ := step.(int)
			if i >= len(below) {
				return nil
			}
			v = below[i]
		default:
			return nil
		}
	}
	return v
}

// ofKind are the documents of a kind, sorted by name.
func ofKind(docs []document, kind string) (list []document) {
	for _, d := range docs {
		if d.root["kind"] == kind {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b document) int {
		return strings.Compare(fmt.Sprint(at(a.root, "metadata", "name")), fmt.Sprint(at(b.root, "metadata", "name")))
	})
	return list
}
