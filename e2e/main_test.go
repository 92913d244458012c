// Package e2e tests the signalbox binary as users meet it: real servers behind it, real
// clients and the official conformance suite in front of it.
package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

func TestMain(m *testing.M) {
	if err := box.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := box.RemoveBuilt(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// fakeServer is the command line of the fake server with flags.
func fakeServer(t testing.TB, flags ...string) []string {
	t.Helper()
	path, err := box.FakeServer()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{path}, flags...)
}
