package doctor

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/signalbox-mcp/signalbox/internal/child"
)

// fakeMode in the environment makes the test binary a server, most of them broken.
const fakeMode = "SIGNALBOX_TEST_DOCTOR"

func TestMain(m *testing.M) {
	if child.RunWatchdogIfAsked() {
		return
	}
	if mode := os.Getenv(fakeMode); mode != "" {
		runFake(mode)
		return
	}
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
