package admin

import (
	"regexp"
	"strings"
	"testing"
)

// The page's policy names its parts by their hashes, and lets nothing else in.
func TestPage(t *testing.T) {
	w := newRig(t, nil).ask("GET", "/status")
	body := w.Body.String()
	policies := w.Header()["Content-Security-Policy"]
	if w.Header().Get("Content-Type") != "text/html; charset=utf-8" || len(policies) != 1 {
		t.Fatalf("%v", w.Header())
	}
	for tag, directive := range map[string]string{"style": "style-src", "script": "script-src"} {
		parts := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(body, -1)
		if len(parts) != 1 || len(parts[0][1]) < 1000 {
			t.Fatalf("%d parts of %s", len(parts), tag)
		}
		if want := directive + " '" + hashOf(parts[0][1]) + "';"; !strings.Contains(policies[0], want) {
			t.Errorf("no %s in %s", want, policies[0])
		}
	}
	for _, want := range []string{"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "trusted-types 'none'"} {
		if !strings.Contains(policies[0], want) {
			t.Errorf("no %s in %s", want, policies[0])
		}
	}
	if strings.Contains(policies[0], "unsafe") {
		t.Errorf("policy: %s", policies[0])
	}
	for what, pattern := range map[string]string{
		"an address elsewhere":       `(?i)(https?:)?//[a-z0-9.-]+\.[a-z]{2,}/`,
		"a handler in an attribute":  `(?i)<[^>]*\son[a-z]+\s*=`,
		"a style in an attribute":    `(?i)<[^>]*\sstyle\s*=`,
		"a way to make HTML of text": `innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|eval\(|new Function`,
	} {
		for _, found := range regexp.MustCompile(pattern).FindAllString(body, -1) {
			if found != "http://www.w3.org/" && found != "//www.w3.org/" { // the name of SVG, which nobody asks
				t.Errorf("%s: %s", what, found)
			}
		}
	}
}
