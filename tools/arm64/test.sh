#!/usr/bin/env bash
# Runs what `make arm64` has built under qemu-user: the recorded decisions of test/vectors, a daemon that answers its
# own check, and, with ARM64_CORE_TEST=1, the C++ unit tests but for those that draw many clusters, which take an hour
# to build and to run where each instruction is translated.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly sysroot=$PWD/build/arm64/sysroot programs=$PWD/build/arm64/programs build=$PWD/build/arm64/build
qemu=(qemu-aarch64-static -L "$sysroot" -E "LD_LIBRARY_PATH=$programs/lib")
folder=$(mktemp -d)
trap 'kill "${daemon:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT

cmake --build --preset arm64 --target run_vectors
# The list of files is that of the tests of this machine.
mapfile -t vectors < <(grep -oE "test/vectors/data/[a-z_]+\.jsonl" "$build/CTestTestfile.cmake" | sort -u)
"${qemu[@]}" "$build/test/vectors/run_vectors" --overruled=6 "${vectors[@]}"

echo 'loadlined for arm64:'
"${qemu[@]}" "$programs/bin/loadlined" --version
"${qemu[@]}" "$programs/bin/loadlined" "--socket=$folder/loadlined.sock" >"$folder/log" 2>&1 &
daemon=$!
for _ in $(seq 300); do
  if "${qemu[@]}" "$programs/bin/loadlined" "--check=$folder/loadlined.sock" 2>/dev/null; then
    served=1
    break
  fi
  sleep 0.2
done
[[ -n ${served:-} ]] || { cat "$folder/log"; echo 'loadlined for arm64 does not answer' >&2; exit 1; }
echo 'it answers'

if [[ -e $programs/bin/loadline ]]; then
  echo 'loadline for arm64, with the engine in its own process:'
  LOADLINE_LIBRARY=$programs/lib/libloadline.so "${qemu[@]}" "$programs/bin/loadline" drain \
    -f shim/cli/testdata/drain.json --groups shim/cli/testdata/drain-groups.yaml --now 2026-02-17T09:00:00Z \
    >"$folder/drain"
  head -1 "$folder/drain"
  grep -q '^2 nodes of 8 can go together' "$folder/drain"
fi

if [[ -n ${ARM64_CORE_TEST:-} ]]; then
  cmake --build --preset arm64 --target core_test
  RC_PARAMS='seed=20260217 max_success=10' "${qemu[@]}" "$build/test/core_test" --gtest_brief=1 \
    --gtest_filter='-*Random*:*Properties*:*Exhaustive*:*Seeds*:*Simulat*:*Optimal*'
fi
