package redis

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	tests := []struct {
		url  string
		want target
		show string
	}{
		{"redis://localhost", target{addrs: []string{"localhost:6379"}}, "localhost:6379"},
		{"redis://127.0.0.1:7000/3", target{addrs: []string{"127.0.0.1:7000"}, db: 3}, "127.0.0.1:7000/3"},
		{"redis://[::1]:7000/", target{addrs: []string{"[::1]:7000"}}, "[::1]:7000"},
		{"redis://[::1]", target{addrs: []string{"[::1]:6379"}}, "[::1]:6379"},
		{"rediss://me:p%40s%3As@h:1/0", target{tls: true, addrs: []string{"h:1"}, user: "me", password: "p@s:s"}, "h:1"},
		{"redis://:p@s@h", target{addrs: []string{"h:6379"}, password: "p@s"}, "h:6379"},
		{"redis+sentinel://a:1,b/main/2", target{mode: sentinel, addrs: []string{"a:1", "b:26379"}, master: "main", db: 2}, "a:1,b:26379/main/2"},
		{"rediss+cluster://u:p@a:1,b:2", target{mode: cluster, tls: true, addrs: []string{"a:1", "b:2"}, user: "u", password: "p"}, "a:1,b:2"},
		{"redis+cluster://a/0", target{mode: cluster, addrs: []string{"a:6379"}}, "a:6379"},
	}
	for _, tt := range tests {
		got, err := parseURL(tt.url)
		if err != nil || !reflect.DeepEqual(got, tt.want) || got.String() != tt.show {
			t.Errorf("%s: %+v %q, %v", tt.url, got, got, err)
		}
	}
}

func TestParseURLFails(t *testing.T) {
	for _, u := range []string{
		"", "localhost:6379", "http://h", "redis:h", "redis://", "redis://u:SECRET@", "redis://u:SECRET@h:x",
		"redis://u:SECRET@h:0", "redis://u:SECRET@h:70000", "redis://u:SECRET%zz@h", "redis://u@h", "redis://a,b",
		"redis://u:SECRET@h/x", "redis://u:SECRET@h/1/2", "redis://h?db=1", "redis://u:SECRET#x@h", "redis://::1",
		"redis+sentinel://a:1", "redis+sentinel://a:1/", "redis+cluster://a/1", "redis+cluster://a,,b", "redis://h:1:2",
	} {
		if got, err := parseURL(u); err == nil {
			t.Errorf("%s: %+v", u, got)
		} else if strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: the error shows the password: %v", u, err)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	f.Add("redis+sentinel://u:p@a:1,[::1]:2/main/2")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := parseURL(in)
		if err == nil && (len(got.addrs) == 0 || (got.mode == sentinel) != (got.master != "")) {
			t.Errorf("%q: %+v", in, got)
		}
	})
}
