package mcp

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestMethodRoundTrip(t *testing.T) {
	seen := make(map[string]Method, methodCount)
	for m := Other; m < methodCount; m++ {
		name := m.String()
		if name == "" {
			t.Errorf("method %d has no name", m)
		}
		if was, ok := seen[name]; ok {
			t.Errorf("methods %d and %d share the name %q", was, m, name)
		}
		seen[name] = m
		if got := MethodOf([]byte(name)); got != m {
			t.Errorf("MethodOf(%q) = %d, want %d", name, got, m)
		}
		if isNotif := m >= NotifInitialized; isNotif != strings.HasPrefix(name, "notifications/") {
			t.Errorf("%q stands in the wrong half of the table", name)
		}
	}
}

func TestMethodOfOther(t *testing.T) {
	for _, name := range []string{
		"", "other", "Ping", "ping ", "tools", "tools/", "tools/call\x00", "notifications/",
		"notifications/roots", "rpc.discover", strings.Repeat("x", 1<<16),
	} {
		if got := MethodOf([]byte(name)); got != Other {
			t.Errorf("MethodOf(%.20q) = %v, want Other", name, got)
		}
	}
	if got := Method(255).String(); got != "other" {
		t.Errorf("Method(255).String() = %q, want other", got)
	}
}

func TestMethodOfDoesNotAllocate(t *testing.T) {
	known, unknown := []byte(NotifTasks.String()), []byte("x/y/z/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p")
	n := testing.AllocsPerRun(100, func() {
		MethodOf(known)
		MethodOf(unknown)
	})
	if n != 0 {
		t.Errorf("MethodOf allocates %v times, want 0", n)
	}
}

func TestIsListChanged(t *testing.T) {
	want := []Method{NotifToolsListChanged, NotifPromptsListChanged, NotifResourcesListChanged}
	for m := Other; m < methodCount; m++ {
		if got := m.IsListChanged(); got != slices.Contains(want, m) {
			t.Errorf("%v.IsListChanged() = %v", m, got)
		}
	}
}

func TestRevisions(t *testing.T) {
	all := append([]Revision{R20260728}, Handshakes()...)
	for i, r := range all {
		if !r.Known() {
			t.Errorf("%s is not known", r)
		}
		if got := r.Handshake(); got != (r != R20260728) {
			t.Errorf("%s.Handshake() = %v", r, got)
		}
		if got := LooksModern(string(r)); got == r.Handshake() {
			t.Errorf("LooksModern(%s) = %v", r, got)
		}
		for j, o := range all {
			if got := r.AtLeast(o); got != (i <= j) { // newest first
				t.Errorf("%s.AtLeast(%s) = %v", r, o, got)
			}
		}
	}
	if got := Handshakes()[0]; got != NewestHandshake {
		t.Errorf("Handshakes()[0] = %s, want %s", got, NewestHandshake)
	}
}

func TestStrangeVersions(t *testing.T) {
	tests := []struct {
		version string
		modern  bool
	}{
		{"", false},
		{"2026-07-27", false},
		{"2026-07-29", true},
		{"2027-01-01", true},
		{"9999-99-99", true},
		{"2026-7-28", false},
		{"2026-07-28 ", false},
		{"2026-07-28-draft", false},
		{"2026/07/28", false},
		{"DRAFT-2026", false},
		{"DRAFT-2027", false},
		{"２０２６-07-28", false},
		{"1.0", false},
	}
	for _, tt := range tests {
		if got := LooksModern(tt.version); got != tt.modern {
			t.Errorf("LooksModern(%q) = %v, want %v", tt.version, got, tt.modern)
		}
		r := Revision(tt.version)
		if r.Known() || r.Handshake() {
			t.Errorf("%q is taken for a revision", tt.version)
		}
	}
	if Revision("").AtLeast(R20241105) || Revision("latest").AtLeast(R20241105) {
		t.Error("what is no date is at least a revision")
	}
}

func TestHeadersAreCanonical(t *testing.T) {
	for _, h := range []string{
		HeaderSession, HeaderVersion, HeaderMethod, HeaderName, HeaderLastEvent, HeaderParamPrefix,
	} {
		if got := http.CanonicalHeaderKey(h); got != h {
			t.Errorf("canonical form of %q is %q", h, got)
		}
	}
}
