package httpd

import (
	"net/url"
	"strings"
)

// parseTarget does what url.ParseRequestURI does, into u, and quicker for
// paths without escapes.
func parseTarget(u *url.URL, method, target string) error {
	if path, query, asked := strings.Cut(target, "?"); len(path) > 0 && path[0] == '/' && all(path, isPlain) &&
		(!asked || query != "") && all(query, isVisible) {
		*u = url.URL{Path: path, RawQuery: query}
		return nil
	}
	// CONNECT has a bare authority, or a path (net/rpc).
	authority := method == "CONNECT" && !strings.HasPrefix(target, "/")
	if authority {
		target = "http://" + target
	}
	parsed, err := url.ParseRequestURI(target)
	if err != nil {
		return err
	}
	if authority {
		parsed.Scheme = ""
	}
	*u = *parsed
	return nil
}
