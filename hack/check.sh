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

# Of the packages whose tests start an API server, those with others as well, which a short run leaves.
both=(./cmd/hekla ./cmd/scheduler/app ./internal/benchmark ./internal/edge)

step format unformatted
step build go build ./...
step vet go vet ./...
step staticcheck go tool staticcheck $(go list ./... | grep -v /pkg/client/)
step tests make --no-print-directory test-alone
step "short tests" go test -vet=off -short "${both[@]}"
