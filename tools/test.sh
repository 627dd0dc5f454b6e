#!/usr/bin/env bash
# Runs every test, after `make build`. A suite that fails does not keep the others from running; the last line
# says what became of all of them.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

export LOADLINE_LIBRARY=$PWD/build/lib/libloadline.so
export LOADLINED=$PWD/build/bin/loadlined
# go test would analyze all of Kubernetes first, which takes longer than the tests: make tidy runs go vet.
export GOFLAGS="${GOFLAGS:-} -vet=off"

# Tests that need a program which is not built note themselves here: go test says nothing of those that it skips.
SKIPPED_TESTS=$(mktemp)
export SKIPPED_TESTS
trap 'rm -f "$SKIPPED_TESTS"' EXIT

failed=()
ran=0

# suite NAME DIRECTORY COMMAND...
suite() {
  local name=$1 directory=$2
  shift 2
  printf '\n== %s\n' "$name"
  local start=$SECONDS
  if (cd "$directory" && "$@"); then
    printf '== %s: passed in %d s\n' "$name" $((SECONDS - start))
  else
    printf '== %s: FAILED after %d s\n' "$name" $((SECONDS - start))
    failed+=("$name")
  fi
  ran=$((ran + 1))
}

# -count=1: the engine is not a file that the go command knows of, so a cached result would prove nothing.
suite 'C++ and vectors' . ctest --preset release --parallel "$(nproc)"
# Tests of which the numbers are to be seen run by themselves: without -v, go test shows nothing of what passes.
effective='^TestEffectiveResourcesEqualComponentHelpers$'
claim='^TestClaimOnFiveSeeds$'
minutes='^TestFirstFiveMinutes$'
# Growth and drains with what the projects release: their other tests take longer, see make check-long.
controllers='^(TestAutoscalerWithKarpenter|TestAutoscalerWithClusterAPIMachineSets)$'
suite 'Go: shim' shim go test -count=1 -skip "$effective" ./...
suite 'Go: shim, effective requests and limits' shim go test -count=1 -v -run "$effective" ./view
suite 'Go: loadline-scheduler' shim/cmd/loadline-scheduler go test -count=1 ./...
suite 'Go: end to end' test/e2e go test -count=1 -timeout 60m -skip "$claim|$controllers" ./...
suite 'Go: end to end, with controllers of Karpenter and Cluster API' test/e2e env BUILD_KARPENTER=1 \
  BUILD_CLUSTER_API=1 go test -count=1 -timeout 60m -v -run "$controllers" .
suite 'Go: end to end, limits over allocatable on one of five seeds' test/e2e go test -count=1 -timeout 30m -v \
  -run "$claim/^Seed1\$" .
suite 'Go: pages of docs' tools/reference env GOWORK=off go test -count=1 ./...
suite 'Go: check of vulnerabilities' tools/lint env GOWORK=off go test -count=1 ./...
suite 'Go: chart' test/chart env GOWORK=off go test -count=1 -timeout 30m -skip "$minutes" ./...
suite 'Go: chart, the first five minutes' test/chart env GOWORK=off go test -count=1 -timeout 30m -v -run "$minutes" .

echo
cut -f1 "$SKIPPED_TESTS" | sort | uniq -c | while read -r count target; do
  printf 'skipped: %d of the tests that make %s runs; it builds a program for them first\n' "$count" "$target"
done
if ((${#failed[@]} > 0)); then
  printf 'FAIL: %d of %d suites (%s) in %d s\n' ${#failed[@]} $ran \
    "$(printf '%s, ' "${failed[@]}" | sed 's/, $//')" $SECONDS
  exit 1
fi
printf 'PASS: all %d suites in %d s\n' $ran $SECONDS
