package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// chartRefused are values that contradict themselves, and a part of what is said.
var chartRefused = map[string]struct{ values, want string }{
	"no server":                  {`{"config": {"mcpServers": null}}`, "no server"},
	"replicas without a store":   {`{"replicaCount": 2}`, "replicaCount above 1 needs redis"},
	"autoscaler without a store": {`{"autoscaling": {"enabled": true}}`, "autoscaling.enabled needs redis"},
	"two stores":                 {`{"redis": {"url": "redis://r", "secretName": "s"}}`, "contradict"},
	"peers without a secret":     {`{"redis": {"url": "redis://r"}, "peers": {"secretName": ""}}`, "peers.secretName"},
	"nobody has to be anybody":   {`{"auth": {"keys": {"secretName": ""}}}`, "insecure: true"},
	"tokens for anybody":         {`{"auth": {"issuers": ["https://i"]}}`, "auth.audiences"},
	"monitor without metrics":    {`{"serviceMonitor": {"enabled": true}}`, "admin.enabled"},
}

func TestChartRefuses(t *testing.T) {
	for name, c := range chartRefused {
		if _, err := renderChart(t, merged(readYAML(t, chartValues+"/default.yaml"), jsonMap(t, c.values))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// jsonMap reads JSON as YAML is read: whole numbers are uint64.
func jsonMap(t *testing.T, text string) map[string]any {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return readYAML(t, path)
}

// Helm refuses a value that the schema does not know, so it has to know all and nothing else.
func TestChartSchema(t *testing.T) {
	text, err := os.ReadFile(chartDir + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema["properties"].(map[string]any), "global") // Helm's own
	sameKeys(t, "", readYAML(t, chartDir+"/values.yaml"), schema)
}

func sameKeys(t *testing.T, path string, values map[string]any, schema map[string]any) {
	t.Helper()
	known, fixed := schema["properties"].(map[string]any)
	if !fixed {
		return
	}
	if schema["additionalProperties"] != false {
		t.Errorf("the schema takes anything at %q", path)
	}
	for name := range known {
		if _, ok := values[name]; !ok {
			t.Errorf("values.yaml lacks %s%s", path, name)
		}
	}
	for name, v := range values {
		below, ok := known[name].(map[string]any)
		if !ok {
			t.Errorf("the schema lacks %s%s", path, name)
		}
		if v, isMap := v.(map[string]any); isMap {
			sameKeys(t, path+name+".", v, below)
		}
	}
}

// TestChartByHelm: where helm is installed, it makes the same of the chart as the
// tests above do, and refuses a mistyped value.
func TestChartByHelm(t *testing.T) {
	if _, err := exec.LookPath("helm"); err != nil {
		t.Skip("no helm here")
	}
	helm := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "helm", args...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := helm("lint", "--strict", chartDir, "--values", chartValues+"/default.yaml"); err != nil {
		t.Errorf("helm lint: %v\n%s", err, out)
	}
	template := []string{"template", "mcp", chartDir, "--namespace", "tools", "--kube-version", "1.32.0"}
	for name := range chartKinds {
		file := filepath.Join(chartValues, name+".yaml")
		out, err := helm(append(template, "--values", file)...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		ours, err := renderChart(t, readYAML(t, file))
		if err != nil {
			t.Fatal(err)
		}
		theirs := documents(t, "helm", []byte(out))
		for kind := range strings.FieldsSeq(chartKinds[name]) {
			a, b := ofKind(ours, kind), ofKind(theirs, kind)
			if len(ours) != len(theirs) || len(a) != len(b) {
				t.Fatalf("%s: %d documents, helm makes %d", name, len(ours), len(theirs))
			}
			for i := range a {
				if !reflect.DeepEqual(a[i].root, b[i].root) {
					t.Errorf("%s: %s differs:\n%v\nhelm makes\n%v", name, kind, a[i].root, b[i].root)
				}
			}
		}
	}
	for name, c := range chartRefused {
		file := filepath.Join(t.TempDir(), "values.json")
		if err := os.WriteFile(file, []byte(c.values), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := helm(append(template, "--values", chartValues+"/default.yaml", "--values", file)...); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: helm says %v: %s", name, err, out)
		}
	}
	if out, err := helm(append(template, "--set", "replicaCuont=3")...); err == nil || !strings.Contains(out, "replicaCuont") {
		t.Errorf("a mistyped value: %v: %s", err, out)
	}
}
