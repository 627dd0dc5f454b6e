#!/usr/bin/env bash
# Renews all dependencies: Go modules, Kubernetes and its parts within their minor, and the Debian packages of the C++
# side, whose versions go to tools/packages.txt. `git diff` shows what became of it; make lint and make test tell what
# it is worth.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly root=$PWD
readonly workspace=(shim shim/cmd/loadline-scheduler test/e2e)
readonly apart=(tools/release tools/reference tools/lint test/chart)

# go_list MODULE...: with GOWORK of the caller; the newest version that a query allows.
go_list() { go list -m -f '{{.Version}}' "$@"; }

# kubernetes MINOR FILE...: puts the newest patch of a minor into go.mod files, and pages with one. k8s.io/api v0.36.3
# is part of v1.36.3.
kubernetes() {
  local minor=$1 newest
  shift
  newest=$(cd test/e2e && GOWORK=off GOFLAGS=-mod=mod go_list "k8s.io/kubernetes@v$minor")
  sed -i -E "s|(k8s\.io/kubernetes v1)\.${minor#1.}\.[0-9]+|\1.${newest#v1.}|
             s|(k8s\.io/[a-z-]+ v0)\.${minor#1.}\.[0-9]+|\1.${newest#v1.}|" "$@"
  echo "renew: Kubernetes $newest"
}

# direct: what the module of this folder requires itself, but for ourselves, Kubernetes, and what moves with it.
direct() {
  go mod edit -json | python3 -c '
import json, sys
own = ("loadline.dev/", "k8s.io/", "sigs.k8s.io/")
for module in json.load(sys.stdin)["Require"] or []:
    if not module.get("Indirect") and not module["Path"].startswith(own):
        print(module["Path"])'
}

# fixed: what other modules must not change.
fixed() { grep -E '^go |^\s+k8s\.io/(api|kubernetes) v' go.mod; }

# take MODULE: its newest version, else its newest patch, that leaves Kubernetes and Go as they are; else none.
take() {
  local before saved query
  before=$(fixed)
  saved=$(mktemp -d)
  cp go.mod go.sum "$saved"
  for query in upgrade patch; do
    if go get "$1@$query" >"$saved/log" 2>&1 && [[ $(fixed) == "$before" ]]; then
      grep -F "upgraded $1 " "$saved/log" || true
      rm -r "$saved"
      return
    fi
    cp "$saved/go.mod" "$saved/go.sum" .
  done
  echo "renew: $1 stays: no newer version goes with this Kubernetes and this Go"
  rm -r "$saved"
}

for folder in kubernetes/*/; do
  minor=$(basename "$folder")
  kubernetes "$minor" "$folder/go.mod" "test/e2e/go.${minor/./}.mod"
done
kubernetes "$(sed -nE 's/^KUBERNETES \?= //p' Makefile)" "${workspace[@]/%//go.mod}" "${apart[@]/%//go.mod}" \
  docs/install.md
for module in "${workspace[@]}" "${apart[@]}"; do
  echo "renew: $module"
  (
    cd "$module"
    export GOWORK=off # go get knows no workspace, whose one replacement is made here for as long as it takes
    if grep -qE '^\s+loadline.dev/shim v' go.mod && ! grep -q '^replace loadline.dev/shim ' go.mod; then
      go mod edit -replace="loadline.dev/shim=$root/shim"
      trap 'go mod edit -dropreplace=loadline.dev/shim' EXIT
    fi
    mapfile -t modules < <(direct)
    for one in "${modules[@]}"; do take "$one"; done
    go get -t ./...
  )
done

if ! command -v apt-get >/dev/null; then
  echo 'renew: not a Debian system; versions of Debian packages stay as they are'
elif ((EUID != 0)); then
  echo 'renew: as root, this renews Debian packages as well'
else
  mapfile -t packages < <(sed -E 's/[[:space:]#].*//; /^$/d' tools/packages.txt)
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends --only-upgrade "${packages[@]}"
fi
python3 tools/lint/package_versions.py --write
git --no-pager diff --stat -- '*go.mod' tools/packages.txt
