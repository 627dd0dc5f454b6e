#!/usr/bin/env bash
# Runs the tests of what is compiled with Kubernetes, after `make build`: the plugin inside kube-scheduler's framework
# and all that runs on a real control plane. GOWORK=kubernetes/MINOR/go.work runs them with that minor.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

export LOADLINE_LIBRARY=${LOADLINE_LIBRARY:-$PWD/build/lib/libloadline.so}
export LOADLINED=${LOADLINED:-$PWD/build/bin/loadlined}

failed=0
printf '== Kubernetes %s\n' "$(cd test/e2e && go list -m -f '{{.Version}}' k8s.io/kubernetes)"
(cd shim && go test -count=1 ./scheduler/... ./view/... ./extender/...) || failed=1
(cd shim/cmd/loadline-scheduler && go test -count=1 ./...) || failed=1
(cd test/e2e && go test -count=1 -timeout 90m ./...) || failed=1
exit $failed
