#!/usr/bin/env bash
# Fuzzes each target of build/fuzz for a number of seconds. New inputs go to build/fuzz/corpus, and a crash to
# build/fuzz/crash: what is worth keeping is copied to test/fuzz/corpus by hand.
#
#   tools/fuzz.sh SECONDS [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: tools/fuzz.sh SECONDS [TARGET...]}
shift
if (($# > 0)); then
  targets=("${@/#/build/fuzz/test/fuzz/}")
else
  targets=(build/fuzz/test/fuzz/*_fuzz)
fi

export ASAN_SYMBOLIZER_PATH=${ASAN_SYMBOLIZER_PATH:-$(command -v llvm-symbolizer-14 || true)}
for target in "${targets[@]}"; do
  name=$(basename "$target")
  seeds=test/fuzz/corpus/${name%_fuzz}
  found=build/fuzz/corpus/$name
  mkdir -p "$found" build/fuzz/crash
  echo "== $name, $seconds s"
  "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=1 \
    -artifact_prefix="build/fuzz/crash/$name-" "$found" "$seeds" 2>&1 |
    grep -vE '^#[0-9]+[[:space:]]+(NEW|REDUCE|RELOAD|pulse)' 
  echo "== $name: clean"
done
