// Command mutants proves that the tests would notice: each mutant is one fault
// seeded into the product, of the kind that would send a message to the wrong
// session or lose one. The program builds each, runs the tests of the packages
// that should catch it, and fails if they pass.
//
//	go run ./internal/mutants [-run REGEXP] [-v]
//
// The sources stay as they are: the fault is laid over them by the -overlay
// flag of the go command.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// mutant is one seeded fault.
type mutant struct {
	item string // of docs/checklist.md
	what string
	file string // from the root of the module
	old  string // stands exactly once in file
	new  string
	pkgs []string // whose tests must fail
}

func main() {
	run := flag.String("run", "", "only the mutants whose item or description matches")
	verbose := flag.Bool("v", false, "print what the tests said")
	flag.Parse()
	only, err := regexp.Compile(*run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants: -run:", err)
		os.Exit(2)
	}
	root, err := moduleRoot()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	bad, tried := 0, 0
	for _, m := range mutants {
		if !only.MatchString(m.item + " " + m.what) {
			continue
		}
		tried++
		began := time.Now()
		verdict, out := m.try(root)
		fmt.Printf("%-10s %s %s (%.1fs)\n", verdict, m.item, m.what, time.Since(began).Seconds())
		if verdict != killed {
			bad++
		}
		if *verbose || verdict != killed && verdict != survived {
			fmt.Println(out)
		}
	}
	fmt.Printf("%d mutants, %d not killed\n", tried, bad)
	if bad > 0 || tried == 0 {
		os.Exit(1)
	}
}

const (
	killed   = "killed"
	survived = "SURVIVED"
	unfit    = "UNFIT" // does not apply or does not build: mend the mutant
)

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	mod := strings.TrimSpace(string(out))
	if err != nil || mod == "" || mod == os.DevNull {
		return "", fmt.Errorf("run this inside the module: %v", err)
	}
	return filepath.Dir(mod), nil
}

// try lays the fault over the sources and runs the tests.
func (m *mutant) try(root string) (verdict, output string) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return unfit, err.Error()
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return unfit, err.Error()
	}
	if out, err := command(root, append([]string{"go", "vet", "-overlay", overlay}, m.pkgs...)); err != nil {
		return unfit, out
	}
	out, err := command(root, append([]string{"go", "test", "-count=1", "-failfast", "-timeout=90s", "-overlay", overlay}, m.pkgs...))
	if err == nil {
		return survived, out
	}
	return killed, out
}

func (m *mutant) overlay(root, dir string) (string, error) {
	path := filepath.Join(root, filepath.FromSlash(m.file))
	src, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := bytes.Count(src, []byte(m.old)); n != 1 {
		return "", fmt.Errorf("%s has %d places like %q, want 1", m.file, n, m.old)
	}
	mutated := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(mutated, bytes.Replace(src, []byte(m.old), []byte(m.new), 1), 0o600); err != nil {
		return "", err
	}
	spec, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutated}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, spec, 0o600)
}

func command(dir string, argv []string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}
