package e2e

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// TestRelease runs scripts/release.sh for this platform: the checksums are right, the
// binary is static and says the version of git, and a second run gives the same bytes.
// `make release` builds the other platforms, which `make cross` compiles too.
func TestRelease(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil || runtime.GOOS == "windows" {
		t.Skip("scripts/release.sh needs bash")
	}
	version := gitVersion(t)
	var sums [2]string
	var dir string
	for i := range sums {
		dir = filepath.Join(t.TempDir(), "dist")
		cmd := exec.CommandContext(t.Context(), filepath.Join(box.Root(), "scripts", "release.sh"), dir, runtime.GOOS+"/"+runtime.GOARCH)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("release.sh: %v\n%s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = string(text)
	}
	if sums[0] != sums[1] {
		t.Errorf("two runs differ:\n%s%s", sums[0], sums[1])
	}
	name := "signalbox-" + version + "-" + runtime.GOOS + "-" + runtime.GOARCH
	sum, file, ok := strings.Cut(strings.TrimSpace(sums[1]), "  ")
	if !ok || file != name+".tar.gz" {
		t.Fatalf("SHA256SUMS is %q; want one line for %s.tar.gz", sums[1], name)
	}
	archive, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	if got := sha256.Sum256(archive); hex.EncodeToString(got[:]) != sum {
		t.Errorf("the checksum of %s is %x, SHA256SUMS says %s", file, got, sum)
	}
	files := unpack(t, filepath.Join(dir, file))
	for _, want := range []string{"LICENSE", "THIRD-PARTY-LICENSES", "README.md", "CHANGELOG.md", "completions/signalbox.bash", "completions/_signalbox", "completions/signalbox.fish", "signalbox"} {
		if info, err := os.Stat(filepath.Join(files, name, want)); err != nil || info.Size() == 0 {
			t.Errorf("%s in the archive: %v", want, err)
		}
	}
	binary := filepath.Join(files, name, "signalbox")
	out, err := exec.CommandContext(t.Context(), binary, "version").CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "signalbox "+version {
		t.Errorf("signalbox version says %q, %v; git says %s", got, err, version)
	}
	out, err = exec.CommandContext(t.Context(), "go", "version", "-m", binary).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "CGO_ENABLED=0") || !strings.Contains(string(out), "-trimpath=true") || strings.Contains(string(out), box.Root()) {
		t.Errorf("the binary was built in another way than it should: %v\n%s", err, out)
	}
}

func gitVersion(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "describe", "--tags", "--match", "v[0-9]*", "--always", "--dirty")
	cmd.Dir = box.Root()
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("no git history to have a version of: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// unpack unpacks a tar.gz into a folder.
func unpack(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsLocal(h.Name) {
			t.Fatalf("the archive holds %q", h.Name)
		}
		target := filepath.Join(dir, h.Name)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err == nil {
			err = os.WriteFile(target, text, h.FileInfo().Mode())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
