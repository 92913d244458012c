package e2e

import (
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// legacyFilter is everything-server over stdio, without the per-request era.
func legacyFilter(t testing.TB, flags ...string) []string {
	t.Helper()
	return append(built(t, box.LegacyFilter, flags...), installEverythingServer(t))
}

// modernOnly is a server over stdio that refuses initialize.
func modernOnly(t testing.TB, flags ...string) []string {
	t.Helper()
	return built(t, box.ModernOnly, flags...)
}

// modernOnlyHTTP is the same over HTTP.
func modernOnlyHTTP(t *testing.T) *program {
	t.Helper()
	addr := freeAddr(t)
	return startProgram(t, addr, nil, built(t, box.ModernOnly, "-http", addr)...)
}

// randomNamesHTTP is a server of one era whose tool has this name.
func randomNamesHTTP(t *testing.T, era, name string, flags ...string) *program {
	t.Helper()
	addr := freeAddr(t)
	return startProgram(t, addr, nil, built(t, box.RandomNames, append([]string{"-era", era, "-name", name, "-http", addr}, flags...)...)...)
}

// everythingHTTP is everything-server over HTTP: with sessions it speaks the handshake era
// only, without them both.
func everythingHTTP(t *testing.T, sessions bool) *program {
	t.Helper()
	addr := freeAddr(t)
	flags := []string{"-http", addr}
	if sessions {
		flags = append(flags, "-stateless=false")
	}
	return startProgram(t, addr, nil, append([]string{installEverythingServer(t)}, flags...)...)
}
