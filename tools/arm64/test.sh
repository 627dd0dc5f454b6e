#!/usr/bin/env bash
# Runs what `make arm64` has built under qemu-user: the C++ tests, but for those that take long where each instruction is
# translated, a daemon that answers, and the command line with the engine in its own process.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly sysroot=$PWD/build/arm64/sysroot programs=$PWD/build/arm64/programs
cmake --build --preset arm64 --target core_test plugin_test

# Of the property tests over random clusters and of the larger corpora one run on the machine itself is enough.
filter=${ARM64_TESTS:-'-*Random*:*Properties*:*Exhaustive*:*Corpus*:*Seeds*:*Simulat*:*Optimal*'}
export RC_PARAMS='seed=20260217 max_success=10' LOADLINE_LIBRARY=$programs/lib/libloadline.so LOADLINED=$programs/bin/loadlined
qemu=(qemu-aarch64-static -L "$sysroot")
for test in core_test plugin_test; do
  "${qemu[@]}" "build/arm64/build/test/$test" --gtest_brief=1 --gtest_filter="$filter"
done
