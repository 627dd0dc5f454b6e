#!/usr/bin/env bash
# scheduler_perf with the default profile, the plugin on both transports and the extender: see cmd/bench-scheduler.
set -euo pipefail
cd "$(dirname "$0")"
exec go run ./cmd/bench-scheduler "$@"
