package redis

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// mode is what answers at the addresses.
type mode uint8

const (
	single mode = iota
	sentinel
	cluster
)

// target is a parsed URL.
type target struct {
	mode           mode
	tls            bool
	addrs          []string // HOST:PORT
	user, password string
	db             int
	master         string // of a sentinel
}

// schemes are those of URLs, and whether TLS is used.
var schemes = map[string]target{
	"redis":           {mode: single},
	"rediss":          {mode: single, tls: true},
	"redis+sentinel":  {mode: sentinel},
	"rediss+sentinel": {mode: sentinel, tls: true},
	"redis+cluster":   {mode: cluster},
	"rediss+cluster":  {mode: cluster, tls: true},
}

// parseURL reads a URL of Config. It does not use url.Parse, which refuses lists
// of hosts and shows the password in its errors.
func parseURL(s string) (target, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	t, known := schemes[strings.ToLower(scheme)]
	if !ok || !known {
		return target{}, errors.New("redis: URL must begin with redis://, rediss://, redis+sentinel:// or redis+cluster://")
	}
	if strings.ContainsAny(rest, "?#") {
		return target{}, errors.New("redis: URL has a query or fragment; neither is known (percent-encode ? and # of a password)")
	}
	authority, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, password, _ := strings.Cut(authority[:at], ":")
		var err1, err2 error
		t.user, err1 = url.PathUnescape(user)
		t.password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil {
			return target{}, errors.New("redis: user or password of the URL is not percent-encoded")
		}
		if t.password == "" {
			return target{}, errors.New("redis: URL names a user without a password")
		}
		authority = authority[at+1:]
	}
	for host := range strings.SplitSeq(authority, ",") {
		addr, err := t.address(host)
		if err != nil {
			return target{}, err
		}
		t.addrs = append(t.addrs, addr)
	}
	if t.mode == single && len(t.addrs) > 1 {
		return target{}, errors.New("redis: URL names several servers: for Sentinel or a cluster begin it with redis+sentinel:// or redis+cluster://")
	}
	return t, t.parsePath(path)
}

// address returns HOST:PORT of HOST[:PORT].
func (t target) address(s string) (string, error) {
	port := "6379"
	if t.mode == sentinel {
		port = "26379"
	}
	host := s
	if h, p, err := net.SplitHostPort(s); err == nil {
		host, port = h, p
	} else if h, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(h, "]") {
		host = strings.TrimSuffix(h, "]")
	} else if strings.Contains(s, ":") {
		return "", fmt.Errorf("redis: URL: %q is not HOST:PORT", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); host == "" || err != nil || n == 0 {
		return "", fmt.Errorf("redis: URL: %q is not HOST:PORT", s)
	}
	return net.JoinHostPort(host, port), nil
}

// parsePath reads what follows the hosts.
func (t *target) parsePath(path string) error {
	path = strings.TrimSuffix(path, "/")
	if t.mode == sentinel {
		t.master, path, _ = strings.Cut(path, "/")
		if t.master == "" {
			return errors.New("redis: URL must name the master: redis+sentinel://HOST:PORT/MASTER")
		}
	}
	if path == "" {
		return nil
	}
	n, err := strconv.ParseUint(path, 10, 16)
	if err != nil {
		return fmt.Errorf("redis: URL: database %q is not a number", path)
	}
	if t.mode == cluster && n != 0 {
		return errors.New("redis: URL: a cluster has no databases")
	}
	t.db = int(n)
	return nil
}

// String returns the addresses for logs, without user and password.
func (t target) String() string {
	s := strings.Join(t.addrs, ",")
	if t.master != "" {
		s += "/" + t.master
	}
	if t.db != 0 {
		s += "/" + strconv.Itoa(t.db)
	}
	return s
}
