package remote

import (
	"strings"
	"testing"
)

func TestCut(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "no such path": "no such path", "really? yes": "really? yes", "a=b?": "a=b?",
		"Cannot POST /mcp?token=x&tenant=a%2Fb here":                     "Cannot POST /mcp?... here",
		`<a href="https://h/p?k=v#f">`:                                   `<a href="https://h/p?...">`,
		"/a?x=1 and /b?y=2":                                              "/a?... and /b?...",
		strings.Repeat("x", 300):                                         strings.Repeat("x", 200) + "...",
		strings.Repeat("y", 190) + "?token=" + strings.Repeat("z", 9000): strings.Repeat("y", 190) + "?...",
	} {
		if got := cut(in); got != want {
			t.Errorf("%.60q: got %q, want %q", in, got, want)
		}
	}
}
