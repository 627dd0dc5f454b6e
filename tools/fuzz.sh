#!/usr/bin/env bash
# Fuzzes each target of build/fuzz, and then each Go target, for a number of seconds. New inputs go to
# build/fuzz/corpus, and a crash to build/fuzz/crash: what is worth keeping is copied to test/fuzz/corpus by hand. Go
# writes a finding to testdata/fuzz of its package.
#
#   tools/fuzz.sh SECONDS [TARGET...]     a target such as objects_fuzz, or dump/FuzzRead
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: tools/fuzz.sh SECONDS [TARGET...]}
shift
go_targets=(dump/FuzzRead nodegroup/FuzzParse autoscaler/config/FuzzLoad extender/FuzzDecode extender/FuzzEncode
  expander/FuzzDecode)
targets=("$@")
if ((${#targets[@]} == 0)); then
  targets=(build/fuzz/test/fuzz/*_fuzz)
  targets=("${targets[@]##*/}" "${go_targets[@]}")
fi

export ASAN_SYMBOLIZER_PATH=${ASAN_SYMBOLIZER_PATH:-$(command -v llvm-symbolizer-14 || true)}
for name in "${targets[@]}"; do
  echo "== $name, $seconds s"
  if [[ $name == */Fuzz* ]]; then
    (cd shim && go test "./${name%/*}" -run '^$' -fuzz "^${name##*/}\$" -fuzztime "${seconds}s" -parallel "$(nproc)")
    echo "== $name: clean"
    continue
  fi
  seeds=test/fuzz/corpus/${name%_fuzz}
  found=build/fuzz/corpus/$name
  mkdir -p "$found" build/fuzz/crash
  # A question has 200 ms; the sanitizers make it slower, but not a hundred times. No input has a reason to ask for
  # half a gigabyte at once.
  "build/fuzz/test/fuzz/$name" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=3072 -malloc_limit_mb=512 \
    -dict=test/fuzz/loadline.dict -print_final_stats=1 -verbosity=1 \
    -artifact_prefix="build/fuzz/crash/$name-" "$found" "$seeds" 2>&1 |
    grep -vE '^#[0-9]+[[:space:]]+(NEW|REDUCE|RELOAD|pulse)|^(Dictionary|ParseDictionary)' 
  echo "== $name: clean"
done
