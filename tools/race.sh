#!/usr/bin/env bash
# Runs the Go tests of shim under the race detector, one package after the other, and prints how long each took: a run
# that is cut short has printed what it has found so far. Tests that draw thousands of cases by one goroutine draw fewer
# (-short).
#   [PART=1/4] tools/race.sh [PACKAGE...]      PART: the first, fifth, ninth, ... package
set -uo pipefail
cd "$(dirname "$0")/../shim" || exit

readonly part=${PART:-1/1}
mapfile -t packages < <(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "${@:-./...}")
failed=()
for ((i = ${part%/*} - 1; i < ${#packages[@]}; i += ${part#*/})); do
  start=$SECONDS
  if go test -race -short -count=1 -timeout 20m "${packages[i]}"; then
    printf 'race: %s passed in %d s\n' "${packages[i]}" $((SECONDS - start))
  else
    printf 'race: %s FAILED after %d s\n' "${packages[i]}" $((SECONDS - start))
    failed+=("${packages[i]}")
  fi
done
((${#failed[@]} == 0)) || { printf 'race: FAILED: %s\n' "${failed[*]}"; exit 1; }
printf 'race: nothing found in %d s\n' $SECONDS
