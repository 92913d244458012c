package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// patience bounds every wait for something that has to happen soon.
const patience = 30 * time.Second

// Need skips the test where a program is missing, and fails it in CI.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := find(name); err == nil {
			continue
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is missing; .ci/run installs it", name)
		}
		t.Skipf("%s is missing: install the Debian packages redis-server and nginx-light to run this test", name)
	}
}

// find is the path of a program, also where only root looks for it.
func find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return exec.LookPath(filepath.Join("/usr/sbin", name))
}

// freeAddr is an address to listen at, again and again: below the ports that the kernel
// hands out to clients, so that it stays free while nobody listens.
func freeAddr(t testing.TB) string {
	t.Helper()
	for range 200 {
		addr := fmt.Sprintf("127.0.0.1:%d", 15000+rand.IntN(15000))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		l.Close()
		return addr
	}
	t.Fatal("no free port")
	return ""
}

// Await polls a state that announces itself by no event, until limit is over. The
// condition returns what it saw instead, or the empty string when all is well.
func Await(t testing.TB, limit time.Duration, what string, condition func() string) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		saw := condition()
		if saw == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: still %s after %v", what, saw, limit)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
