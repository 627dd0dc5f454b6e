#!/usr/bin/env bash
# Makes sure that what the build needs is on this machine: Debian packages, with those that the arguments name, Go,
# Go modules and the solver that tests ask. Costs some 50 ms when it is.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t listed < <(sed -E 's/[[:space:]#].*//; /^$/d' tools/packages.txt)
readonly packages=("${listed[@]}" "$@")
readonly go_minor=26  # go 1.26

missing_packages() {
  local installed
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)
  local package
  for package in "${packages[@]}"; do
    grep -qx "$package installed" <<<"$installed" || echo "$package"
  done
}

check_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "deps: not a Debian system; CMake will say what it does not find. On Debian 12 it would be:" >&2
    echo "  ${packages[*]}" >&2
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]} == 0)) && return
  local install=(apt-get install -y --no-install-recommends "${missing[@]}")
  if ((EUID != 0)); then
    printf 'deps: %d Debian packages are missing. Run this, then make again:\n  sudo sh -c "apt-get update && %s"\n' \
      "${#missing[@]}" "${install[*]}" >&2
    exit 1
  fi
  echo "deps: installing ${missing[*]}"
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive "${install[@]}"
}

check_go() {
  local hint="Get it from https://go.dev/dl/ and put its bin directory into PATH."
  if ! command -v go >/dev/null; then
    echo "deps: Go 1.$go_minor or newer is needed, and there is no go in PATH. $hint" >&2
    exit 1
  fi
  # The toolchain that is installed, not one that go would fetch.
  local version minor
  version=$(cd / && GOTOOLCHAIN=local go env GOVERSION)
  minor=$(sed -nE 's/^.*go1\.([0-9]+).*$/\1/p' <<<"$version")
  if ((${minor:-0} < go_minor)); then
    echo "deps: Go 1.$go_minor or newer is needed; $(command -v go) is $version. $hint" >&2
    exit 1
  fi
}

readonly go_modules=(shim shim/cmd/loadline-scheduler test/e2e)
# Outside of the workspace: what these need is not to choose versions for what runs in clusters.
readonly apart_modules=(tools/release tools/reference test/chart)

# Later steps then need no network. The stamp tells for which files and into which folder the modules were downloaded.
fetch_modules() {
  local stamp=build/go-modules.stamp folder state module
  folder=$(go env GOMODCACHE)
  state="$folder $(cat go.work "${go_modules[@]/%//go.mod}" "${go_modules[@]/%//go.sum}" \
    "${apart_modules[@]/%//go.mod}" "${apart_modules[@]/%//go.sum}" tools/lint/go.mod tools/lint/go.sum | sha256sum)"
  [[ -e $stamp && $(<"$stamp") == "$state" && -d $folder ]] && return
  echo "deps: downloading Go modules"
  for module in "${go_modules[@]}"; do
    # Not `go mod download`: in a workspace it takes those that nothing is built from as well, and writes go.work.sum.
    (cd "$module" && go list -deps -test ./... >/dev/null)
  done
  for module in "${apart_modules[@]}"; do
    (cd "$module" && GOWORK=off go list -deps -test ./... >/dev/null)
  done
  (cd tools/lint && GOWORK=off go mod download)
  mkdir -p build
  echo "$state" >"$stamp"
}

readonly highs=highspy==1.16.0  # HiGHS, the solver that core/pack is tested against, as a Python package
readonly highs_needs=numpy==2.4.6

# Into build/highs, apart from the Python packages of the machine. Only one test needs it, which says when it is
# missing.
fetch_highs() {
  local stamp=build/highs/packages.stamp
  [[ -e $stamp && $(<"$stamp") == "$highs $highs_needs" ]] && return
  echo "deps: downloading $highs"
  python3 -m venv --clear build/highs
  if build/highs/bin/pip install --quiet --disable-pip-version-check --only-binary :all: "$highs" "$highs_needs"; then
    echo "$highs $highs_needs" >"$stamp"
  else
    echo "deps: $highs cannot be downloaded: the tests pack_oracle and consolidate_oracle will be skipped" >&2
  fi
}

check_packages
check_go
fetch_modules
fetch_highs
