#!/usr/bin/env bash
# Builds what a release consists of: for each platform an archive with the static binary,
# licenses and shell completions, and SHA256SUMS for all of them. The version is that of
# git. The same commit and Go version give the same bytes, in any folder, on any machine.
# Usage: release.sh DIR [GOOS/GOARCH...]
set -euo pipefail
shopt -s nullglob

[ $# -ge 1 ] || { echo 'usage: release.sh DIR [GOOS/GOARCH...]' >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
platforms=("$@")
[ $# -gt 0 ] || platforms=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64)
cd "$(dirname "$0")/.."

version=$(git describe --tags --match 'v[0-9]*' --always --dirty)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CGO_ENABLED=0 GOFLAGS= GOAMD64=v1 GOARM64=v8.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build OUT builds the binary for GOOS and GOARCH.
build() {
	go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.version=$version" -o "$1" ./cmd/signalbox
}

# licenses lists the modules that are in the binary, each with its license.
licenses() {
	go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/signalbox |
		LC_ALL=C sort -u | while read -r module at dir; do
		printf '%s\n%s %s\n\n' '----------------------------------------' "$module" "$at"
		local texts=("$dir"/LICENSE* "$dir"/COPYING* "$dir"/NOTICE*)
		[ ${#texts[@]} -gt 0 ] || { echo "release: $module has no license file" >&2; exit 1; }
		cat "${texts[@]}"
	done
}

echo "release: signalbox $version"
mkdir -p "$work/files/completions"
cp LICENSE README.md CHANGELOG.md "$work/files"
licenses >"$work/files/THIRD-PARTY-LICENSES"
host=$(GOOS= GOARCH= go env GOOS)/$(GOOS= GOARCH= go env GOARCH)
GOOS=${host%/*} GOARCH=${host#*/} build "$work/host"
go build -o "$work/archive" ./internal/archive
"$work/host" completion bash >"$work/files/completions/signalbox.bash"
"$work/host" completion zsh >"$work/files/completions/_signalbox"
"$work/host" completion fish >"$work/files/completions/signalbox.fish"

archives=()
for platform in "${platforms[@]}"; do
	os=${platform%/*} arch=${platform#*/}
	name=signalbox-$version-$os-$arch binary=signalbox archive=$name.tar.gz
	[ "$os" != windows ] || { binary=signalbox.exe archive=$name.zip; }
	rm -f "$work"/files/signalbox "$work"/files/signalbox.exe
	if [ "$platform" = "$host" ]; then
		cp "$work/host" "$work/files/$binary"
	else
		GOOS=$os GOARCH=$arch build "$work/files/$binary"
	fi
	(cd "$work/files" && "$work/archive" "$out/$archive" "$name" .)
	archives+=("$archive")
	echo "release: $archive"
done
sum=(sha256sum)
command -v sha256sum >/dev/null || sum=(shasum -a 256)
(cd "$out" && "${sum[@]}" "${archives[@]}" >SHA256SUMS)
