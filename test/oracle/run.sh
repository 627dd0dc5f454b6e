#!/usr/bin/env bash
# run.sh SCRIPT ARGUMENT...: holds the core against HiGHS, which tools/deps.sh puts into build/highs. Without it ctest
# says that this was skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ ! -e build/highs/packages.stamp ]]; then
  echo 'HiGHS is missing: run make deps where PyPI can be reached' >&2
  exit 77
fi
exec build/highs/bin/python3 "test/oracle/$1.py" "${@:2}"
