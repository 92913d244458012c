#!/usr/bin/env bash
# Does what a newcomer does, and says how long it took: a fresh clone, the first command of
# README.md, two clients with a session each.
# Usage: first-run.sh [TREE], where TREE is used in place of a clone
set -euo pipefail

seconds() { awk -v from="$1" -v to="$(date +%s.%N)" 'BEGIN { printf "%.1f s\n", to - from }'; }
say() { printf '%-42s %s\n' "$1" "$2"; }

work=$(mktemp -d)
pid=
end() {
	if [ -n "$pid" ]; then
		kill -TERM -- "-$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	fi
	rm -rf "$work"
}
trap end EXIT

began=$(date +%s.%N)
if [ $# -gt 0 ]; then
	tree=$1
else
	tree=$work/signalbox
	git clone -q "$(dirname "$0")/.." "$tree"
fi
cd "$tree"
say 'cloned' "$(seconds "$began")"

# The first block of commands in README.md, as it stands there, on free ports.
command=$(awk '/^```sh$/ { on = 1; next } /^```$/ { if (on) exit } on' README.md)
export SIGNALBOX_LISTEN=127.0.0.1:0 SIGNALBOX_ADMIN_LISTEN=127.0.0.1:0
echo "$command"
mkfifo "$work/log"
set -m # a process group of its own, to end all of it
bash -c "$command" >"$work/out" 2>"$work/log" &
pid=$!
set +m
exec 3<"$work/log"
url= admin=
while IFS= read -r line <&3; do
	case $line in
	*'Streamable HTTP'*) url=${line##* } ;;
	*'/metrics') admin=${line##* } admin=${admin%/metrics} ;;
	*'"mcpServers"'*) break ;;
	*) [ -n "$url" ] || echo "  $line" ;;
	esac
done
cat <&3 >"$work/rest" & # the log must go on being read
[ -n "$url" ] || { echo 'first-run: it does not serve' >&2; exit 1; }
say "serves $url" "$(seconds "$began")"

# post SESSION BODY sends a message; SESSION is empty for the first.
post() {
	curl -sS "$url" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
		${1:+-H "Mcp-Session-Id: $1"} -D "$work/headers" -d "$2"
}

# client NAME opens a session, calls a tool, and has to get its own answer.
client() {
	local session
	post '' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"'"$1"'","version":"1"}}}' >"$work/$1"
	session=$(awk 'tolower($1) == "mcp-session-id:" { print $2 }' "$work/headers" | tr -d '\r')
	post "$session" '{"jsonrpc":"2.0","method":"notifications/initialized"}'
	post "$session" '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"I am '"$1"'"}}}' >"$work/$1"
	grep -q "I am $1" "$work/$1" || { echo "first-run: $1 got: $(cat "$work/$1")" >&2; exit 1; }
	say "$1 has called a tool" "$(seconds "$began")"
}
client first
client second

status=$(curl -s -o "$work/status" -w '%{http_code}' "$admin/status")
[ "$status" != 200 ] || say "status page, $(wc -c <"$work/status" | tr -d ' ') bytes" "$(seconds "$began")"
curl -sS "$admin/metrics" | grep '^signalbox_sessions'
say 'in all' "$(seconds "$began")"
