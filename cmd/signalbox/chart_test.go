package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const chartValues = "testdata/helm"

// chartKinds says what the chart makes of each file in chartValues.
var chartKinds = map[string]string{
	"default":    "ConfigMap Deployment NetworkPolicy PodDisruptionBudget Service ServiceAccount",
	"replicas":   "ConfigMap Deployment NetworkPolicy PodDisruptionBudget Service Service ServiceAccount ServiceMonitor",
	"everything": "ConfigMap Deployment HorizontalPodAutoscaler NetworkPolicy PodDisruptionBudget Service Service ServiceAccount",
	"insecure":   "Deployment Service",
}

// chartArgs are the arguments of signalbox that each of them makes.
var chartArgs = map[string]string{
	"default": "serve --config=/etc/signalbox/config/signalbox.yaml --listen=0.0.0.0:8080 --drain=20s --auth-keys=/etc/signalbox/keys/keys.yaml",
	"replicas": "serve --config=/etc/signalbox/config/signalbox.yaml --listen=0.0.0.0:8080 --drain=20s --admin-listen=0.0.0.0:8081 --admin-token-file=/etc/signalbox/admin/admin-token --store=redis://redis:6379/0" +
		" --peer-listen=0.0.0.0:7070 --advertise=$(POD_IP):7070 --peer-secret-file=/etc/signalbox/peers/peer-secret --auth-keys=/etc/signalbox/keys/keys.yaml" +
		" --public-url=https://mcp.example.com",
	"everything": "serve --config=/etc/signalbox/config/signalbox.yaml --listen=0.0.0.0:8080 --drain=20s --admin-listen=0.0.0.0:9090 --admin-token-file=/etc/signalbox/admin/token" +
		" --peer-listen=0.0.0.0:7171 --advertise=$(POD_IP):7171 --peer-secret-file=/etc/signalbox/peers/secret --auth-keys=/etc/signalbox/keys/clients.yaml" +
		" --auth-issuer=https://login.example.com --auth-audience=https://mcp.example.com --auth-scope=mcp --public-url=https://mcp.example.com/team" +
		" --allowed-host=mcp.internal --allowed-origin=https://app.example.com --trusted-proxy=10.0.0.0/8" +
		" --tls-cert=/etc/signalbox/tls/tls.crt --tls-key=/etc/signalbox/tls/tls.key --max-sessions=4096",
	"insecure": "serve --config=/etc/signalbox/config/signalbox.yaml --listen=0.0.0.0:8080 --drain=20s --insecure",
}

// chartReplicas is how many pods each has; nil leaves it to the autoscaler.
var chartReplicas = map[string]any{"default": uint64(1), "replicas": uint64(3), "insecure": uint64(1)}

func TestChart(t *testing.T) {
	for name, want := range chartKinds {
		t.Run(name, func(t *testing.T) {
			docs, err := renderChart(t, readYAML(t, filepath.Join(chartValues, name+".yaml")))
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, d := range docs {
				kinds = append(kinds, fmt.Sprint(d.root["kind"]))
				if d.root["apiVersion"] == nil || !strings.HasPrefix(fmt.Sprint(at(d.root, "metadata", "name")), "m") {
					t.Errorf("%s: no version or name: %v", d.file, d.root)
				}
			}
			if slices.Sort(kinds); strings.Join(kinds, " ") != want {
				t.Errorf("it makes %q, want %s", kinds, want)
			}
			deployment := ofKind(docs, "Deployment")[0].root
			if got := at(deployment, "spec", "replicas"); got != chartReplicas[name] {
				t.Errorf("%v replicas, want %v", got, chartReplicas[name])
			}
			pod := at(deployment, "spec", "template")
			if got := strings.Trim(fmt.Sprint(at(pod, "spec", "containers", 0, "args")), "[]"); got != chartArgs[name] {
				t.Errorf("it runs signalbox %s\nwant          %s", got, chartArgs[name])
			}
			checkServes(t, pod, docs)
			checkPorts(t, pod, docs)
			checkRestricted(t, pod)
			checkSelectors(t, pod, docs)
		})
	}
}

// checkServes takes the container's arguments as signalbox serve does, with its
// mounted files in a folder.
func checkServes(t *testing.T, pod any, docs []document) {
	t.Helper()
	container, dir := at(pod, "spec", "containers", 0), t.TempDir()
	files := map[string]string{
		"config/signalbox.yaml": "mcpServers: {s: {url: http://s:8000/mcp}}",
		"keys/keys.yaml":        "[]", "keys/clients.yaml": "[]",
		"peers/peer-secret": strings.Repeat("s", 32), "peers/secret": strings.Repeat("s", 32),
		"admin/admin-token": strings.Repeat("t", 16), "admin/token": strings.Repeat("t", 16), "tls/tls.crt": "", "tls/tls.key": "",
	}
	for _, d := range ofKind(docs, "ConfigMap") {
		files["config/signalbox.yaml"] = at(d.root, "data", "signalbox.yaml").(string)
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range at(container, "env").([]any) {
		name := at(v, "name").(string)
		t.Setenv(name, map[string]string{"POD_IP": "10.0.0.9", "SIGNALBOX_STORE": "redis://:secret@redis:6379/0"}[name])
	}
	t.Setenv("CRM_TOKEN", "token")
	mounted := make(map[string]bool)
	for _, m := range at(container, "volumeMounts").([]any) {
		mounted[at(m, "mountPath").(string)] = true
	}
	var args []string
	for _, a := range at(container, "args").([]any) {
		arg := strings.ReplaceAll(a.(string), "$(POD_IP)", "10.0.0.9")
		if flag, path, ok := strings.Cut(arg, "=/"); ok {
			if !mounted["/"+filepath.Dir(path)] {
				t.Errorf("%s: the folder of %s is not mounted", flag, path)
			}
			arg = flag + "=" + filepath.Join(dir, strings.TrimPrefix(path, "etc/signalbox/"))
		}
		args = append(args, arg)
	}
	grammar, _, _, err := parse(args, streams{strings.NewReader(""), io.Discard, io.Discard})
	if err != nil {
		t.Fatalf("signalbox %q: %v", args, err)
	}
	if _, err := grammar.Serve.check(); err != nil {
		t.Errorf("signalbox %q: %v", args, err)
	}
	if _, err := grammar.Serve.secrets(); err != nil {
		t.Errorf("signalbox %q: %v", args, err)
	}
	r := start(t, "check", "--config", filepath.Join(dir, "config/signalbox.yaml"))
	if code := r.exit(); code != exitOK {
		_, text := r.text()
		t.Errorf("signalbox check: exit code %d: %s", code, text)
	}
	checkTimes(t, pod, grammar.Serve.Drain)
}

// checkTimes: a replica that is killed before it has drained loses calls.
func checkTimes(t *testing.T, pod any, drain time.Duration) {
	t.Helper()
	seconds := func(v any) time.Duration {
		n, _ := v.(uint64)
		return time.Duration(n) * time.Second
	}
	grace := seconds(at(pod, "spec", "terminationGracePeriodSeconds"))
	pause := seconds(at(pod, "spec", "containers", 0, "lifecycle", "preStop", "sleep", "seconds"))
	if need := pause + drain + 2*flushTime + stopTime; pause == 0 || grace <= need {
		t.Errorf("%v until it is killed, with a pause of %v; it may need %v", grace, pause, need)
	}
}

// checkPorts: whatever names a port names one of the container, and probes ask what answers without a session.
func checkPorts(t *testing.T, pod any, docs []document) {
	t.Helper()
	ports := make(map[any]bool)
	for _, p := range at(pod, "spec", "containers", 0, "ports").([]any) {
		ports[at(p, "name")] = true
	}
	used := 0
	for _, d := range docs {
		visit("", d.root, func(key string, v any) {
			if name, ok := v.(string); ok && (key == "targetPort" || key == "port") {
				if used++; !ports[name] {
					t.Errorf("%s: the container has no port %q", d.file, name)
				}
			}
		})
	}
	if used < 3 {
		t.Errorf("only %d ports are named", used)
	}
	tls := at(pod, "spec", "volumes")
	scheme := "HTTP"
	if slices.ContainsFunc(tls.([]any), func(v any) bool { return at(v, "name") == "tls" }) {
		scheme = "HTTPS"
	}
	for probe, path := range map[string]string{"readinessProbe": "/readyz", "livenessProbe": "/healthz"} {
		get := at(pod, "spec", "containers", 0, probe, "httpGet")
		if at(get, "path") != path || at(get, "port") != "http" || at(get, "scheme") != scheme {
			t.Errorf("%s: %v, want %s by %s", probe, get, path, scheme)
		}
	}
}

// checkRestricted: the Pod Security Standard "restricted", and a root file system that is read-only.
func checkRestricted(t *testing.T, pod any) {
	t.Helper()
	container := at(pod, "spec", "containers", 0)
	for what, is := range map[string]bool{
		"runAsNonRoot":             at(pod, "spec", "securityContext", "runAsNonRoot") == true,
		"seccompProfile":           at(pod, "spec", "securityContext", "seccompProfile", "type") == "RuntimeDefault",
		"allowPrivilegeEscalation": at(container, "securityContext", "allowPrivilegeEscalation") == false,
		"readOnlyRootFilesystem":   at(container, "securityContext", "readOnlyRootFilesystem") == true,
		"capabilities":             reflect.DeepEqual(at(container, "securityContext", "capabilities", "drop"), []any{"ALL"}),
		"no account token":         at(pod, "spec", "automountServiceAccountToken") == false,
	} {
		if !is {
			t.Errorf("%s is not as the restricted profile wants it", what)
		}
	}
	volumes := make(map[any]bool)
	for _, v := range at(pod, "spec", "volumes").([]any) {
		volumes[at(v, "name")] = true
	}
	for _, m := range at(container, "volumeMounts").([]any) {
		if !volumes[at(m, "name")] {
			t.Errorf("no volume %v", at(m, "name"))
		}
	}
}

func checkSelectors(t *testing.T, pod any, docs []document) {
	t.Helper()
	labels := at(pod, "metadata", "labels").(map[string]any)
	for _, d := range docs {
		for _, path := range [][]any{{"spec", "selector", "matchLabels"}, {"spec", "podSelector", "matchLabels"}, {"spec", "selector"}} {
			selector, _ := at(d.root, path...).(map[string]any)
			if selector["matchLabels"] != nil || d.root["kind"] == "ServiceMonitor" {
				continue
			}
			for k, v := range selector {
				if labels[k] != v {
					t.Errorf("%s: it selects %s=%v, the pod has %v", d.file, k, v, labels[k])
				}
			}
		}
	}
	for _, d := range ofKind(docs, "ServiceMonitor") {
		admin := ofKind(docs, "Service")[1]
		for k, v := range at(d.root, "spec", "selector", "matchLabels").(map[string]any) {
			if at(admin.root, "metadata", "labels", k) != v {
				t.Errorf("the monitor selects %s=%v, the service has %v", k, v, at(admin.root, "metadata", "labels", k))
			}
		}
	}
}
