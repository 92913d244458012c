#!/usr/bin/env bash
# Runs every fuzz target of every package of this module, one after the other.
# Usage: fuzz.sh DURATION
set -euo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fuzz PACKAGE TARGET DURATION. A worker that is busy when the time is over makes
# the go command report "context deadline exceeded" as a failure (golang/go#75804):
# without a failing input, and with nothing else said, it found nothing.
fuzz() {
	local status=0
	go test -run '^$' -fuzz "^$2\$" -fuzztime "$3" "$1" 2>&1 | tee "$log" || status=$?
	[ "$status" -eq 0 ] && return
	if grep -q '^ *context deadline exceeded$' "$log" && ! grep -Eq 'Failing input|_test\.go:|panic:' "$log"; then
		echo "fuzz: $2: its time was over while an input ran; no failing input"
		return
	fi
	return "$status"
}

for pkg in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		echo "fuzz: $pkg $target for $1"
		fuzz "$pkg" "$target" "$1"
	done
done
