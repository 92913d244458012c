//go:build unix

package main

import (
	"os"
	"syscall"
	"testing"
)

// hangUp sends SIGHUP to this process.
func hangUp(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}
