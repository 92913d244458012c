package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// nginxConfig takes the address to listen at, that of the server, and on or off for buffering.
//
// A connection ends after as many requests as there may be, since nginx would end it after 1000,
// and a message passes in memory, since nginx would put 64 KiB into a file.
const nginxConfig = `daemon off;
pid nginx.pid;
error_log stderr warn;
worker_processes auto;
events { worker_connections 4096; }
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	keepalive_requests 1000000000;
	client_max_body_size 64m;
	client_body_buffer_size 2m;
	upstream server {
		server %[2]s;
		keepalive 256;
		keepalive_requests 1000000000;
	}
	server {
		listen %[1]s;
		location / {
			proxy_pass http://server;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering %[3]s;
			proxy_max_temp_file_size 0;
		}
	}
}
`

// nginx is Debian's nginx as a plain reverse proxy before server. Its default, buffering "on",
// is the quicker one for a JSON reply, which is over when it is there. It must be "off" before
// event streams: nginx would hold events back until a buffer is full or the stream ends.
func nginx(server *target, buffering string) *target {
	return &target{name: "nginx", needs: "nginx", mcp: "/mcp", behind: server, argv: func(l *lab, at place) ([]string, error) {
		program, err := find("nginx")
		if err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp(l.dir, "nginx-")
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, "nginx.conf")
		config := fmt.Sprintf(nginxConfig, at.listen(), at.behind, buffering)
		if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
			return nil, err
		}
		return []string{program, "-e", "stderr", "-p", dir, "-c", file}, nil
	}}
}

// find is the path of a program that the machine may have, also where only root looks for it.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if path, err := exec.LookPath(filepath.Join("/usr/sbin", name)); err == nil {
		return path, nil
	}
	return "", err
}

// nginxVersion is empty where there is none.
func nginxVersion(ctx context.Context) string {
	program, err := find("nginx")
	if err != nil {
		return ""
	}
	out, err := exec.CommandContext(ctx, program, "-v").CombinedOutput()
	if err != nil {
		return ""
	}
	_, version, _ := strings.Cut(strings.TrimSpace(string(out)), "/")
	return version
}
