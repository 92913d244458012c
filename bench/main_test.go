package main

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	for _, tc := range []struct{ rows, targets, want, series string }{
		{"http-64,echo-16", "", "http-64 echo-16", ""},
		{"http-16", "", "http-16 http-16-added", ""},
		{"http-1-added", "", "http-1 http-1-added", ""},
		{"bridge-a-16-cpu", "", "bridge-a-16 bridge-a-16-cpu", "passed through bridged passed through bridged"},
		{"watched-64", "", "watched-64 watched-64-cpu", "signalbox, off signalbox, on signalbox, off signalbox, on"},
		{"http-16", "signalbox,direct", "http-16 http-16-added", "signalbox direct signalbox"},
		{"http-16,memory", "nginx", "http-16 http-16-added", "nginx nginx"},
	} {
		rows, err := choose(newRows(), options{rows: list(tc.rows), targets: list(tc.targets)})
		if err != nil {
			t.Fatal(err)
		}
		var keys, names []string
		for _, r := range rows {
			keys = append(keys, r.key)
			for _, s := range r.series() {
				names = append(names, s.name)
			}
		}
		if got := strings.Join(keys, " "); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.rows, got, tc.want)
		}
		if got := strings.Join(names, " "); tc.series != "" && got != tc.series {
			t.Errorf("%s of %s: %s, want %s", tc.rows, tc.targets, got, tc.series)
		}
	}
	if _, err := choose(newRows(), options{rows: []string{"http-2"}}); err == nil {
		t.Error("an unknown row is taken")
	}
}

func TestSkipMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	rows := []row{{own: of(&target{name: "a", needs: "signalbox-bench-no-such-program"}, nil), base: of(&target{name: "b"}, nil)}}
	skipMissing(rows)
	if rows[0].own.skip == "" || rows[0].base.skip != "" {
		t.Errorf("skipped: %q, %q", rows[0].own.skip, rows[0].base.skip)
	}
}

func TestNginxConfig(t *testing.T) {
	l := &lab{dir: t.TempDir()}
	for buffering, target := range map[string]*target{"on": newTargets().nginx, "off": newTargets().nginxStream} {
		argv, err := target.argv(l, place{port: 1, behind: "127.0.0.1:2"})
		if _, missing := find("nginx"); missing != nil {
			if err == nil {
				t.Errorf("no nginx, but %v", argv)
			}
			t.Skip(missing)
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(context.Background(), argv[0], append(argv[1:], "-t")...).CombinedOutput()
		if err != nil {
			t.Errorf("nginx: %v\n%s", err, out)
		}
		config, err := os.ReadFile(argv[slices.Index(argv, "-c")+1])
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"listen 127.0.0.1:1;", "server 127.0.0.1:2;", "keepalive 256;", "proxy_buffering " + buffering + ";"} {
			if !strings.Contains(string(config), want) {
				t.Errorf("no %q", want)
			}
		}
	}
}
