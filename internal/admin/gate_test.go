package admin

import (
	"net/http"
	"strings"
	"testing"
)

const testToken = "a-token-of-some-length"

func TestToken(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Token = testToken })
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"none":                       {nil, 401},
		"empty":                      {[]string{"Authorization: "}, 401},
		"wrong":                      {[]string{"Authorization: Bearer " + testToken + "x"}, 401},
		"no scheme":                  {[]string{"Authorization: " + testToken}, 401},
		"two":                        {[]string{"Authorization: Bearer " + testToken, "Authorization: Bearer x"}, 401},
		"bearer":                     {[]string{"Authorization: Bearer " + testToken}, 200},
		"lower case":                 {[]string{"Authorization: bearer " + testToken}, 200},
		"a browser":                  {[]string{"Authorization: Basic b3BlcmF0b3I6YS10b2tlbi1vZi1zb21lLWxlbmd0aA=="}, 200},
		"a browser, wrong":           {[]string{"Authorization: Basic b3BlcmF0b3I6eA=="}, 401},
		"any name":                   {[]string{"Host: admin.example.com", "Authorization: Bearer " + testToken}, 200},
		"any name, but no token":     {[]string{"Host: admin.example.com"}, 401},
		"the token, of another site": {[]string{"Origin: https://evil.example", "Authorization: Bearer " + testToken}, 403},
	} {
		for _, path := range []string{"/status", "/metrics", "/api/v1/servers", "/api/v1/sessions"} {
			w := r.ask("GET", path, c.headers...)
			if w.Code != c.status {
				t.Errorf("%s, %s: %d, want %d", name, path, w.Code, c.status)
			}
			if w.Code == 401 && len(w.Header()["Www-Authenticate"]) != 2 {
				t.Errorf("%s, %s: %v", name, path, w.Header())
			}
			if w.Code != 200 && strings.Contains(w.Body.String(), "srv") {
				t.Errorf("%s, %s: refused, and says %s", name, path, w.Body)
			}
		}
	}
}

func TestCrossSite(t *testing.T) {
	r := newRig(t, nil)
	s := r.open("client")
	session := "/api/v1/sessions/" + s.Hash()
	link := []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}
	for name, c := range map[string]struct {
		method, path string
		headers      []string
		status       int
	}{
		"no browser":                  {"GET", "/api/v1/servers", nil, 200},
		"the page":                    {"GET", "/api/v1/servers", []string{"Sec-Fetch-Site: same-origin"}, 200},
		"typed in":                    {"GET", "/api/v1/servers", []string{"Sec-Fetch-Site: none"}, 200},
		"rebinding":                   {"GET", "/api/v1/servers", []string{"Host: evil.example:9090"}, 403},
		"another site":                {"GET", "/api/v1/servers", []string{"Sec-Fetch-Site: cross-site"}, 403},
		"another port":                {"GET", "/api/v1/servers", []string{"Sec-Fetch-Site: same-site"}, 403},
		"metrics as a script":         {"GET", "/metrics", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"}, 403},
		"a foreign origin":            {"GET", "/api/v1/servers", []string{"Origin: https://evil.example"}, 403},
		"an origin of clients":        {"GET", "/api/v1/servers", []string{"Origin: https://app.example.com"}, 403},
		"another page on loopback":    {"GET", "/api/v1/servers", []string{"Origin: http://127.0.0.1:3000"}, 403},
		"no origin":                   {"GET", "/api/v1/servers", []string{"Origin: null"}, 403},
		"two origins":                 {"GET", "/api/v1/servers", []string{"Origin: http://127.0.0.1:9090", "Origin: http://evil.example"}, 403},
		"its own origin":              {"GET", "/api/v1/servers", []string{"Origin: http://127.0.0.1:9090"}, 200},
		"a link to the page":          {"GET", "/status", link, 200},
		"a link to the API":           {"GET", "/api/v1/servers", link, 403},
		"a frame":                     {"GET", "/status", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, 403},
		"a form":                      {"POST", session + "/end", []string{"Origin: https://evil.example", "Content-Type: application/x-www-form-urlencoded"}, 403},
		"a form without origin":       {"POST", session + "/end", link, 403},
		"a form of an old browser":    {"POST", session + "/end", []string{"Origin: null"}, 403},
		"a form that was typed in":    {"POST", session + "/end", []string{"Sec-Fetch-Site: none"}, 403},
		"a script of another site":    {"DELETE", session, []string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"}, 403},
		"a question before a request": {"OPTIONS", session, []string{"Origin: https://evil.example", "Access-Control-Request-Method: DELETE"}, 403},
	} {
		w := r.ask(c.method, c.path, c.headers...)
		if w.Code != c.status {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, c.status)
		}
		for h := range w.Header() {
			if strings.HasPrefix(h, "Access-Control-") {
				t.Errorf("%s: %s is set", name, h)
			}
		}
	}
	if len(r.live.Views()) != 1 {
		t.Fatal("the session was ended")
	}
	if w := r.ask("DELETE", session, "Sec-Fetch-Site: same-origin", "Origin: http://127.0.0.1:9090"); w.Code != http.StatusNoContent {
		t.Errorf("the page itself: %d", w.Code)
	}
	if len(r.live.Views()) != 0 {
		t.Error("the session lives")
	}
}
