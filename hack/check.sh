#!/usr/bin/env bash
# Checks what can be checked without an API server, and says how long each step took. What has not changed since the last time costs nothing:
# the go command keeps the results of tests. CI runs the rest, too.
set -euo pipefail
cd "$(dirname "$0")/.."

step() {
	local name=$1 began=$SECONDS
	shift
	"$@" || { echo "FAIL $name"; exit 1; }
	printf 'ok   %-12s %4d s\n' "$name" $((SECONDS - began))
}

unformatted() {
	local found
	found=$(gofmt -l $(git ls-files '*.go'))
	[ -z "$found" ] || { echo "not gofmt-ed: $found"; return 1; }
}

# Tests that need an API server import one of these packages.
servers='hekla.sh/hekla/(test/apitest|test/installed|internal/localcluster)'

# alone are the packages whose tests need no API server.
alone() {
	go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... | grep -vE " $servers( |/|\$)" | cut -d' ' -f1
}

tests() {
	# A line for each package that was tested, and the whole output of what fails.
	go test -timeout 10m $(alone) | { grep -v 'no test files' || true; }
}

step format unformatted
step build go build ./...
step vet go vet ./...
step staticcheck go tool staticcheck $(go list ./... | grep -v /pkg/client/)
step tests tests
