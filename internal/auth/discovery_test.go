package auth

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/auth/authtest"
)

func TestDiscovery(t *testing.T) {
	const openID, oauth, inserted = "/tenant/.well-known/openid-configuration", "/.well-known/oauth-authorization-server/tenant", "/.well-known/openid-configuration/tenant"
	describe := func(issuer, keys string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Write(authtest.JSON(m{"issuer": issuer, "jwks_uri": keys}))
		}
	}
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, to, http.StatusFound) }
	}
	const keys = issuerName + "/keys"
	tests := []struct {
		name  string
		place string
		h     http.HandlerFunc
		says  string // in the log; "" if it works
	}{
		{"OpenID, appended", openID, describe(issuerName, keys), ""},
		{"RFC 8414, inserted", oauth, describe(issuerName, keys), ""},
		{"OpenID, inserted", inserted, describe(issuerName, keys), ""},
		{"keys at another origin", openID, describe(issuerName, "https://cdn.example/keys"), ""},
		{"a redirect within the origin", openID, redirect(oauth), ""},
		{"a redirect elsewhere", openID, redirect("https://elsewhere.example/x"), "another origin"},
		{"a redirect to plain http", openID, redirect("http://issuer.example/x"), "another origin"},
		{"another issuer", openID, describe("https://issuer.example/other", keys), "calls itself"},
		{"a slash more", openID, describe(issuerName+"/", keys), "calls itself"},
		{"no keys", openID, describe(issuerName, ""), "no absolute https URL"},
		{"keys by plain http", openID, describe(issuerName, "http://issuer.example/keys"), "must be https"},
		{"keys on this machine", openID, describe(issuerName, "http://127.0.0.1/keys"), "must be https"},
		{"keys in a file", openID, describe(issuerName, "file:///etc/passwd"), "no absolute https URL"},
		{"no JSON", openID, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }, "no JSON"},
		{"too long", openID, func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, maxDocument+1)) }, "longer than"},
		{"an error page", openID, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }, "status 403"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.issuer.Handle(openID, http.NotFound)
			if strings.Contains(c.name, "within the origin") {
				r.issuer.Handle(oauth, describe(issuerName, keys))
			}
			r.issuer.Handle(c.place, c.h)
			q := bearer(r.issuer.Token(nil))
			if c.says == "" {
				r.accepted(q)
				return
			}
			r.refused(http.StatusServiceUnavailable, reasonUnavailable, q)
			if r.logs.count(c.says) == 0 {
				t.Errorf("the log does not say %q:\n%s", c.says, r.logs)
			}
		})
	}
}
