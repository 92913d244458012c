#!/usr/bin/env bash
# Runs every fuzz target of every package of this module, one after the other.
# Usage: fuzz.sh DURATION
set -euo pipefail

for pkg in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		echo "fuzz: $pkg $target for $1"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$pkg"
	done
done
