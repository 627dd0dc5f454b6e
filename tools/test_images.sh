#!/usr/bin/env bash
# Runs the programs of images on a real control plane: in the files of their images alone, on a root that is read-only,
# without any capability and behind the runtime's filter of system calls, as manifests/ has them. Needs to be root. The
# images are made of what `make build` has built.
#   tools/test_images.sh RELEASE_TOOL
set -euo pipefail
cd "$(dirname "$0")/.."
readonly release=$1 folder=build/images/test

if ((EUID != 0)); then
  echo 'test-images: this needs to be root, to run programs in the files of their images alone' >&2
  exit 1
fi
"$release" images --build build --out "$folder" --version v0.0.0-test
# The files of a test's control plane lie in /tmp and are root's; root without capabilities may read its own, as in
# manifests/replacement. The unit tests of tools/release run them as the user of the other manifests.
"$release" unpack --from "$folder" --out "$folder/roots" --uid 0 --bind /tmp
export LOADLINE_PROGRAMS=$PWD/$folder/roots/bin
unset LOADLINED
cd test/e2e
go test -count=1 -timeout 20m \
  -run '^(TestSecondSchedulerRuns|TestReplacementRuns|TestStockSchedulerWithGateway|TestAutoscalerObserves)$' .
