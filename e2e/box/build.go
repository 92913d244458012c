package box

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// Root is the folder of the product's module.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// E2E is the folder of this module.
func E2E() string { return filepath.Join(Root(), "e2e") }

// The binaries of this run, each built at first use.
var (
	Signalbox  = sync.OnceValues(buildSignalbox)
	FakeServer = sync.OnceValues(func() (string, error) { return goBuild(E2E(), "./fakeserver", "fakeserver") })
	SDKServer  = sync.OnceValues(func() (string, error) { return goBuild(E2E(), "./sdkserver", "sdkserver") })

	// What tests of both eras need.
	LegacyFilter  = sync.OnceValues(func() (string, error) { return goBuild(E2E(), "./legacyfilter", "legacyfilter") })
	ModernOnly    = sync.OnceValues(func() (string, error) { return goBuild(E2E(), "./modernonly", "modernonly") })
	RandomNames   = sync.OnceValues(func() (string, error) { return goBuild(E2E(), "./randomnames", "randomnames") })
	ClientWrapper = sync.OnceValues(func() (string, error) { return goBuild(E2E(), "./clientwrapper", "clientwrapper") })

	buildDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "signalbox-e2e-") })
)

func buildSignalbox() (string, error) {
	if path := os.Getenv("SIGNALBOX_BINARY"); path != "" {
		return filepath.Abs(path)
	}
	var flags []string
	if os.Getenv("SIGNALBOX_E2E_RACE") == "1" {
		flags = append(flags, "-race")
	}
	return goBuild(Root(), "./cmd/signalbox", "signalbox", flags...)
}

func goBuild(module, pkg, name string, flags ...string) (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	cmd := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), pkg)...)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}

// Build builds what most tests need, for TestMain.
func Build() error {
	if _, err := Signalbox(); err != nil {
		return err
	}
	if _, err := FakeServer(); err != nil {
		return err
	}
	_, err := SDKServer()
	return err
}

// RemoveBuilt removes what was built, at the end of TestMain.
func RemoveBuilt() error {
	dir, err := buildDir()
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
