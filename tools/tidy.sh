#!/usr/bin/env bash
# Runs the checks of sources that take a quarter of an hour each from nothing: clang-tidy, which skips what passed as it
# is, and go vet, which analyzes all of Kubernetes first.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

failed=()
mkdir -p build
{ cmake --preset lint && cmake --build --preset lint; } >build/lint.log 2>&1 || { cat build/lint.log; exit 1; }
python3 tools/lint/clang_tidy.py build/lint || failed+=(clang-tidy)

# vet DIRECTORY GOWORK PACKAGES...
vet() {
  (cd "$1" && GOWORK=$2 go vet "${@:3}") || failed+=("go vet in $1")
}

for module in shim shim/cmd/loadline-scheduler test/e2e; do vet "$module" '' ./...; done
for module in tools/release tools/reference tools/lint test/chart; do vet "$module" off ./...; done
for workspace in "$PWD"/kubernetes/*/go.work; do vet shim "$workspace" ./scheduler ./view; done

((${#failed[@]} == 0)) || { printf 'tidy: FAILED: %s\n' "$(printf '%s, ' "${failed[@]}" | sed 's/, $//')"; exit 1; }
printf 'tidy: clean, %d s\n' $SECONDS
