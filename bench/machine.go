package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// machineFacts says what the figures were measured on and with.
func machineFacts(ctx context.Context) []string {
	facts := []string{
		fmt.Sprintf("%s, %d cores", cpuModel(), runtime.NumCPU()),
		"kernel " + firstLine("/proc/sys/kernel/osrelease") + ", " + runtime.GOOS + "/" + runtime.GOARCH,
		runtime.Version(),
	}
	if out, err := exec.CommandContext(ctx, "node", "--version").Output(); err == nil {
		facts = append(facts, "Node.js "+strings.TrimSpace(string(out)))
	}
	if version := nginxVersion(ctx); version != "" {
		facts = append(facts, "nginx "+version)
	}
	for _, name := range []string{"supergateway", "mcp-proxy"} {
		if version := npmVersion(name); version != "" {
			facts = append(facts, "npm "+name+" "+version)
		}
	}
	return append(facts, "load average at the start "+firstLine("/proc/loadavg"))
}

func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(b)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

func firstLine(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

func npmVersion(name string) string {
	b, err := os.ReadFile(filepath.Join("npm", "node_modules", name, "package.json"))
	if err != nil {
		return ""
	}
	var p struct{ Version string }
	if json.Unmarshal(b, &p) != nil {
		return ""
	}
	return p.Version
}
