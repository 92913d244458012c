// Package internal_test holds the order in which packages may import each other.
package internal_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/signalbox-mcp/signalbox/"

// layers: a package may import those of earlier rows, and in its own row only
// what allowed names.
var layers = [][]string{
	{"internal/buf", "internal/gcpace", "internal/trace"},
	{"internal/wire", "internal/sse", "internal/mcp", "internal/child", "internal/guard", "internal/h1", "internal/httpd", "internal/config"},
	{"internal/session", "internal/upstream", "internal/auth", "internal/audit", "internal/observe"},
	{"internal/bridge/state", "internal/bridge/header"},
	{"internal/bridge/park", "internal/bridge/dialog", "internal/session/sessiontest", "internal/trace/tracetest", "internal/auth/authtest", "internal/upstream/process", "internal/upstream/remote", "internal/policy", "internal/live", "internal/session/redis", "internal/session/redis/redistest", "internal/cluster"},
	{"internal/bridge", "internal/front", "internal/stdio", "internal/admin", "internal/doctor", "internal/cluster/clustertest"},
	{"cmd/signalbox"},
	{"internal/mutants", "internal/archive"},
}

// noJSON are the packages of the message path, which carry bytes: nothing there
// may decode and encode what it only carries.
var noJSON = []string{"internal/wire", "internal/sse", "internal/upstream", "internal/upstream/process", "internal/upstream/remote", "internal/policy", "internal/live", "internal/front", "internal/h1", "internal/httpd", "internal/stdio", "internal/observe", "internal/bridge", "internal/bridge/state", "internal/bridge/header", "internal/bridge/park", "internal/bridge/dialog"}

type pkg struct {
	ImportPath string
	Imports    []string
}

func list(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	pkgs := make(map[string]pkg)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs[strings.TrimPrefix(p.ImportPath, module)] = p
	}
}

func TestImportOrder(t *testing.T) {
	layer := make(map[string]int)
	for i, row := range layers {
		for _, name := range row {
			layer[name] = i + 1
		}
	}
	for name, p := range list(t) {
		if name == "internal" {
			continue
		}
		if layer[name] == 0 {
			t.Errorf("%s stands in no layer: give it one", name)
		}
		for _, imp := range p.Imports {
			dep, ours := strings.CutPrefix(imp, module)
			if ours && layer[dep] >= layer[name] {
				t.Errorf("%s must not import %s, which is not below it", name, dep)
			}
		}
	}
}

func TestMessagePathDecodesNoJSON(t *testing.T) {
	pkgs := list(t)
	for _, name := range noJSON {
		p, ok := pkgs[name]
		if !ok {
			t.Errorf("%s does not exist", name)
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, "encoding/json") || slices.Contains([]string{"reflect", "github.com/go-json-experiment/json"}, imp) {
				t.Errorf("%s imports %s", name, imp)
			}
		}
	}
}
