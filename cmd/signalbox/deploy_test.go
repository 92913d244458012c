package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

const deployDir = "../../deploy"

// document is one of a YAML file.
type document struct {
	file string
	root map[string]any
}

// deployed reads all YAML below deploy.
func deployed(t *testing.T) (all []document) {
	t.Helper()
	err := filepath.WalkDir(deployDir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "helm" {
			return filepath.SkipDir // templates; TestChart renders them
		}
		if err != nil || filepath.Ext(path) != ".yaml" || filepath.Base(filepath.Dir(path)) == "secrets" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		docs := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var root map[string]any
			switch err := docs.Decode(&root); {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				t.Errorf("%s: %v", path, err)
				return nil
			}
			all = append(all, document{path, root})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// visit calls f with each value below v, and the key that it stands under.
func visit(key string, v any, f func(key string, v any)) {
	f(key, v)
	switch v := v.(type) {
	case map[string]any:
		for k, below := range v {
			visit(k, below, f)
		}
	case []any:
		for _, below := range v {
			visit(key, below, f)
		}
	}
}

var deployFlag = regexp.MustCompile(`--[a-z][a-z-]*`)

func TestDeploymentUsesFlagsThatExist(t *testing.T) {
	help := start(t, "serve", "--help")
	help.exit()
	text, _ := help.text()
	known := make(map[string]bool)
	for _, name := range deployFlag.FindAllString(text, -1) {
		known[name] = true
	}
	used := 0
	for _, doc := range deployed(t) {
		visit("", doc.root, func(key string, v any) {
			if name, ok := strings.CutPrefix(key, "SIGNALBOX_"); ok {
				if used++; !known["--"+strings.ToLower(strings.ReplaceAll(name, "_", "-"))] {
					t.Errorf("%s: no flag has the variable %s", doc.file, key)
				}
			}
			args, ok := v.([]any)
			if !ok || len(args) == 0 || args[0] != "serve" {
				return
			}
			for _, arg := range args[1:] {
				name := deployFlag.FindString(arg.(string))
				if used++; !known[name] {
					t.Errorf("%s: signalbox serve has no flag %q", doc.file, arg)
				}
			}
		})
	}
	if used < 2*5+3 {
		t.Errorf("only %d flags are used by three replicas of compose and the stateful set", used)
	}
}

func TestDeploymentConfigurations(t *testing.T) {
	for _, file := range []string{"compose/signalbox.yaml", "kustomize/config.yaml"} {
		r := start(t, "check", "--config", filepath.Join(deployDir, file))
		if code := r.exit(); code != exitOK {
			_, text := r.text()
			t.Errorf("%s: exit code %d: %s", file, code, text)
		}
	}
}

// A replica that is killed before it has drained loses calls.
func TestDeploymentGivesTimeToDrain(t *testing.T) {
	checked := 0
	for _, doc := range deployed(t) {
		var drain, pause, grace time.Duration
		visit("", doc.root, func(key string, v any) {
			switch n, isNumber := v.(uint64); {
			case key == "terminationGracePeriodSeconds" && isNumber:
				grace = time.Duration(n) * time.Second
			case key == "seconds" && isNumber:
				pause = time.Duration(n) * time.Second
			case key == "stop_grace_period":
				grace, _ = time.ParseDuration(v.(string))
			}
			if s, ok := v.(string); ok && strings.HasPrefix(s, "--drain=") {
				drain, _ = time.ParseDuration(strings.TrimPrefix(s, "--drain="))
			}
		})
		if grace == 0 {
			continue
		}
		checked++
		if need := pause + drain + flushTime + flushTime + stopTime; drain == 0 || grace <= need {
			t.Errorf("%s: %v until it is killed, it may need %v", doc.file, grace, need)
		}
	}
	if checked != 2 {
		t.Errorf("%d files say how long a replica may take to stop", checked)
	}
}

func TestKubernetesProbesAndNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, doc := range deployed(t) {
		if kind, ok := doc.root["kind"].(string); ok {
			seen[kind] = true
		}
		visit("", doc.root, func(key string, v any) {
			if s, ok := v.(string); ok && key == "path" {
				seen[s] = true
			}
		})
	}
	for _, want := range []string{"StatefulSet", "Service", "PodDisruptionBudget", "NetworkPolicy", "Kustomization", "/healthz", "/readyz"} {
		if !seen[want] {
			t.Errorf("no %s", want)
		}
	}
}
