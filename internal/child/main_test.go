package child

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// fakeMode in the environment makes the test binary a fake server.
const fakeMode = "SIGNALBOX_TEST_FAKE"

// pipesAtStart is what openPipeEnds returned before the first test.
var pipesAtStart []string

func TestMain(m *testing.M) {
	if RunWatchdogIfAsked() {
		return
	}
	if mode := os.Getenv(fakeMode); mode != "" {
		runFake(mode, os.Args[1:])
		return
	}
	pipesAtStart = openPipeEnds()
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if after := openPipeEnds(); code == 0 && len(after) > len(pipesAtStart) {
		fmt.Fprintln(os.Stderr, "descriptors leaked:", after)
		code = 1
	}
	os.Exit(code)
}

// openPipeEnds lists our descriptors that this package could leak; empty where there
// is no /proc.
func openPipeEnds() []string {
	var ends []string
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		link, _ := os.Readlink("/proc/self/fd/" + e.Name())
		if strings.HasPrefix(link, "pipe:") || strings.Contains(link, "pidfd") || strings.HasPrefix(link, "/proc") {
			ends = append(ends, e.Name()+" "+link)
		}
	}
	return ends
}
