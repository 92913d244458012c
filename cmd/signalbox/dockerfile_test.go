package main

import (
	"encoding/json"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// instruction is one of a Dockerfile: COPY and what stands behind it.
type instruction struct {
	word string
	args string
}

// dockerfile reads the stages of a Dockerfile, each with its FROM first.
func dockerfile(t *testing.T, file string) (stages [][]instruction) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	joined := ""
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if rest, ok := strings.CutSuffix(line, `\`); ok {
			joined += rest
			continue
		}
		word, args, _ := strings.Cut(joined+line, " ")
		joined = ""
		if word == "FROM" {
			stages = append(stages, nil)
		}
		if len(stages) == 0 {
			t.Fatalf("%s: %s before FROM", file, word)
		}
		last := &stages[len(stages)-1]
		*last = append(*last, instruction{word, strings.TrimSpace(args)})
	}
	return stages
}

// only is the one instruction of a stage with this word.
func only(t *testing.T, file string, stage []instruction, word string) string {
	t.Helper()
	var found []string
	for _, i := range stage {
		if i.word == word {
			found = append(found, i.args)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s: %d times %s in the image, want it once", file, len(found), word)
	}
	return found[0]
}

func argv(t *testing.T, file, text string) (list []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%s: %s runs in a shell, which passes no signal on; write it as a list", file, text)
	}
	return list
}

// No registry is asked here, so what is checked is what the files say.
func TestDockerfiles(t *testing.T) {
	files, err := filepath.Glob(deployDir + "/Dockerfile*")
	if err != nil || len(files) != 2 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		stages := dockerfile(t, file)
		names := make(map[string][]instruction)
		for _, s := range stages {
			base := strings.Fields(s[0].args)
			image, tag, _ := strings.Cut(path.Base(base[0]), ":")
			if tag == "" || tag == "latest" {
				t.Errorf("%s: FROM %s says no version", file, base[0])
			}
			if image == "golang" {
				checkGoVersion(t, file, tag)
			}
			if len(base) == 3 {
				names[base[2]] = s
			}
		}
		checkBuild(t, file, names["build"])
		checkImage(t, file, stages[len(stages)-1], names)
	}
}

func checkGoVersion(t *testing.T, file, tag string) {
	t.Helper()
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^go ` + regexp.QuoteMeta(tag) + `(\.\d+)?$`).Match(mod) {
		t.Errorf("%s: Go %s is not that of go.mod", file, tag)
	}
}

// checkBuild: what is copied is there, and what is set by the linker is a variable.
func checkBuild(t *testing.T, file string, build []instruction) {
	t.Helper()
	copied := make(map[string]bool)
	compiled := false
	for _, i := range build {
		words := strings.Fields(i.args)
		switch i.word {
		case "COPY":
			for _, source := range words[:len(words)-1] {
				copied[source] = true
				if _, err := os.Stat(filepath.Join("../..", source)); err != nil {
					t.Errorf("%s: COPY %s: %v", file, source, err)
				}
			}
		case "RUN":
			if strings.Contains(i.args, "go build") {
				compiled = true
				for _, want := range []string{"CGO_ENABLED=0", "-trimpath", "-X main.version=${VERSION}", "-o /signalbox ", " ./cmd/signalbox"} {
					if !strings.Contains(i.args, want) {
						t.Errorf("%s: it is built without %s: %s", file, want, i.args)
					}
				}
			}
		}
	}
	if !compiled || !copied["go.mod"] || !copied["cmd"] || !copied["internal"] {
		t.Errorf("%s: built from %v", file, copied)
	}
}

// checkImage looks at the last stage, which is the image.
func checkImage(t *testing.T, file string, image []instruction, stages map[string][]instruction) {
	t.Helper()
	contents := make(map[string]bool) // paths of programs
	for _, i := range image {
		switch {
		case i.word == "COPY":
			words := strings.Fields(i.args)
			from, ok := strings.CutPrefix(words[0], "--from=")
			if !ok || stages[from] == nil {
				t.Fatalf("%s: COPY %s: want --from= a stage before it", file, i.args)
			}
			target := words[len(words)-1]
			for _, source := range words[1 : len(words)-1] {
				if from == "build" && source != "/signalbox" {
					t.Errorf("%s: the build writes /signalbox, not %s", file, source)
				}
				if strings.HasSuffix(target, "/") {
					contents[path.Join(target, path.Base(source))] = true
				} else {
					contents[target] = true
				}
			}
		case i.word == "RUN" && strings.Contains(i.args, "apt-get install"):
			for _, program := range []string{"curl", "tini"} {
				contents["/usr/bin/"+program] = slices.Contains(strings.Fields(i.args), program)
			}
		}
	}
	entry := argv(t, file, only(t, file, image, "ENTRYPOINT"))
	for _, word := range entry {
		if strings.HasPrefix(word, "/") && !contents[word] {
			t.Errorf("%s: the entry point %s is nowhere in the image", file, word)
		}
	}
	if path.Base(entry[len(entry)-1]) != "signalbox" {
		t.Errorf("%s: the entry point is %q", file, entry)
	}
	if user := only(t, file, image, "USER"); !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user) {
		t.Errorf("%s: USER %s; Kubernetes sees only of a number that it is not root", file, user)
	}
	if signal := only(t, file, image, "STOPSIGNAL"); signal != "SIGTERM" {
		t.Errorf("%s: STOPSIGNAL %s does not drain", file, signal)
	}
	if ports := strings.Fields(only(t, file, image, "EXPOSE")); !slices.Equal(ports, []string{"8080", "7070"}) {
		t.Errorf("%s: EXPOSE %q", file, ports)
	}
	if strings.HasSuffix(file, ".commands") {
		checkCommandsImage(t, file, image, entry, contents)
	}
}

// checkCommandsImage: that with a shell and other programs in it.
func checkCommandsImage(t *testing.T, file string, image []instruction, entry []string, contents map[string]bool) {
	t.Helper()
	if !slices.Equal(entry, []string{"/usr/bin/tini", "--", "/usr/local/bin/signalbox"}) {
		t.Errorf("%s: nobody reaps: %q", file, entry)
	}
	if !contents["/usr/local/bin/uvx"] || !contents["/usr/local/bin/uv"] || !strings.HasPrefix(image[0].args, "node:") {
		t.Errorf("%s: it lacks uv or Node.js", file)
	}
	var listen string
	for _, i := range image {
		if i.word != "ENV" {
			continue
		}
		for _, kv := range strings.Fields(i.args) {
			name, value, _ := strings.Cut(kv, "=")
			if name == "SIGNALBOX_LISTEN" {
				listen = value
			} else if strings.HasPrefix(name, "SIGNALBOX_") {
				t.Errorf("%s: no test knows %s", file, name)
			}
		}
	}
	_, port, err := net.SplitHostPort(listen)
	if err != nil || port != "8080" {
		t.Errorf("%s: it listens on %q", file, listen)
	}
	_, command, _ := strings.Cut(only(t, file, image, "HEALTHCHECK"), "CMD ")
	health := argv(t, file, command)
	u, err := url.Parse(health[len(health)-1])
	if err != nil || health[0] != "curl" || !contents["/usr/bin/curl"] || u.Host != "127.0.0.1:"+port || u.Path != "/healthz" {
		t.Errorf("%s: the health check is %q", file, health)
	}
	// The listener is open to the network, so a start without credentials is refused.
	t.Setenv("SIGNALBOX_LISTEN", listen)
	if got := usage(t, "serve", "--", "cat"); !strings.Contains(got, "--auth-keys") {
		t.Errorf("%s: without credentials it says %s", file, got)
	}
	r := start(t, argv(t, file, only(t, file, image, "CMD"))...)
	if code := r.exit(); code != exitOK {
		t.Errorf("%s: its CMD ends with %d", file, code)
	}
}
