#!/usr/bin/env bash
# Runs what takes hours, one after the other, none of which keeps the others from running, and writes docs/check-long.md:
# when, on which commit and machine, how long, and what was found. CHECKS names some of them; FUZZ_SECONDS is for each target.
# shellcheck disable=SC2016 # backquotes of Markdown
set -uo pipefail
cd "$(dirname "$0")/.." || exit

readonly page=docs/check-long.md
read -r -a checks <<<"${CHECKS:-test-asan test-tsan race test-e2e-1.37 test-fit-next test-hostile simulate test-scale test-images fuzz mutants}"
readonly logs=build/check-long
mkdir -p "$logs"
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
failed=0

for check in "${checks[@]}"; do
  echo "== $check"
  start=$SECONDS
  if make "$check" >"$logs/$check.log" 2>&1; then
    result='nothing'
  else
    failed=$((failed + 1))
    # The last lines that say what went wrong, without paths of this machine.
    result="FAILED: $(grep -E 'FAIL|ERROR|Error|error:|WARNING: |survived' "$logs/$check.log" | tail -3 | sed "s|$PWD/||g; s/|/\\\\|/g" |
      tr '\n' ';' | cut -c1-300)"
  fi
  printf '| `make %s` | %d min | %s |\n' "$check" $(((SECONDS - start + 59) / 60)) "$result" | tee -a "$rows"
done

{
  printf '<!-- Written by `make check-long`. -->\n\n# What takes hours\n\n'
  printf '`make check-long` runs what is too long for every change, and writes here when it last ran and what it found.\n\n'
  printf 'Last run: %s, commit %s, %d cpus of %s, %s.\n\n' "$(date -u +'%-d %B %Y, %H:%M UTC')" \
    "$(git describe --always --dirty 2>/dev/null || echo unknown)" "$(nproc)" \
    "$(sed -nE 's/^model name\s*: //p' /proc/cpuinfo | head -1)" "$(sed -nE 's/^PRETTY_NAME="(.*)"/\1/p' /etc/os-release)"
  printf '| Command | Time | Found |\n|---|---|---|\n'
  cat "$rows"
} >"$page"
echo "$page is written; logs are in $logs"
((failed == 0))
