package admin

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
)

// The parts of the page. It is one document: its style and its script stand in
// it, known to the browser by their hashes.
var (
	//go:embed page/status.html
	pageHTML string
	//go:embed page/status.css
	pageStyle string
	//go:embed page/status.js
	pageScript string
)

// page serves the status page. Its policy lets nothing else run and nothing be
// fetched but from where the page is from.
type page struct {
	body   []byte
	policy string
}

func newPage() *page {
	body := strings.NewReplacer("/* style */", pageStyle, "/* script */", pageScript).Replace(pageHTML)
	return &page{
		body: []byte(body),
		policy: "default-src 'none'; style-src '" + hashOf(pageStyle) + "'; script-src '" + hashOf(pageScript) +
			"'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	}
}

// hashOf is how a policy names an inline part (CSP level 3, section 2.3.1).
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(p.body)))
	h.Set("Content-Security-Policy", p.policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	_, _ = w.Write(p.body) // a client that is gone needs no report
}
