#!/usr/bin/env bash
# Runs every check of the sources; none keeps the others from running. Sees the files that git tracks or would.
# "lint.sh fast" leaves out the checks that take minutes.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

failed=()

# check NAME COMMAND...
check() {
  local name=$1 start=$SECONDS
  shift
  if "$@"; then
    printf 'ok    %s (%d s)\n' "$name" $((SECONDS - start))
  else
    printf 'FAIL  %s\n' "$name"
    failed+=("$name")
  fi
}

# files PATTERN...: those of the tree, without what was deleted.
files() {
  git ls-files --cached --others --exclude-standard -- "$@" | sort -u | while read -r file; do
    [[ -f $file ]] && printf '%s\n' "$file"
  done
}

clang_format() {
  files '*.cc' '*.h' '*.proto' | xargs -r clang-format-14 --dry-run --Werror
}

gofmt_check() {
  local unformatted
  unformatted=$(files '*.go' | grep -v '\.pb\.go$' | xargs -r gofmt -l) || return 1
  [[ -z $unformatted ]] && return
  printf 'gofmt -w %s\n' "$unformatted"
  return 1
}

# Checks shim and the tools that release it; test/e2e would take minutes more, since it loads all of Kubernetes.
staticcheck() {
  local tool=$PWD/build/tools/staticcheck result=0
  mkdir -p build/tools
  (cd tools/lint && GOWORK=off go build -o "$tool" honnef.co/go/tools/cmd/staticcheck) || return 1
  (cd shim && "$tool" ./...) || result=1
  (cd tools/release && GOWORK=off "$tool" ./...) || result=1
  (cd tools/reference && GOWORK=off "$tool" ./...) || result=1
  return $result
}

# Needs a copy of the vulnerability database: VULNDB, or one that was unpacked into build/vulndb.
vulnerabilities() { tools/vulncheck.sh "$vulndb"; }

shell_check() { files '*.sh' .ci/run | xargs -r shellcheck; }

proto_lint() { files 'proto/*.proto' | xargs -r python3 tools/lint/proto_lint.py; }

file_sizes() { files | xargs -r python3 tools/lint/file_sizes.py; }

# Data of tests says where it is from in the words of that place.
documents() { files '*.md' ':!test/vectors/data' | xargs -r python3 tools/lint/documents.py; }

wall_clock() { files '*_test.go' | xargs -r python3 tools/lint/wall_clock.py; }

# Some packages make the command line a quarter larger each: plugins keep every function with its name.
command_line() {
  local tags found
  tags=$(sed -n 's/^GO_BUILD = .* -tags //p' Makefile)
  found=$(cd shim && go list -deps -tags "$tags" ./cmd/loadline) || return 1
  found=$(grep -xE 'plugin|k8s.io/kube-scheduler/framework|github.com/google/cel-go/cel' <<<"$found") || return 0
  printf 'build/bin/loadline must not link %s\n' "$found"
  return 1
}

# Generates in a copy and compares, so that a check changes nothing.
generated_go() {
  local copy result=0
  copy=$(mktemp -d)
  mkdir "$copy/shim"
  cp -r proto "$copy/" && cp -r shim/api shim/go.mod shim/go.sum "$copy/shim/"
  rm -f "$copy"/shim/api/*/*.pb.go
  "$copy/shim/api/generate.sh" && diff -r shim/api "$copy/shim/api" >/dev/null || result=1
  rm -rf "$copy"
  ((result == 0)) || echo 'shim/api is not what proto/ generates: make generate'
  return $result
}

mkdir -p build
check 'clang-format' clang_format
check 'include rules of core/' python3 tools/lint/include_rules.py
check 'pages of core/ and shim/' python3 tools/lint/folder_pages.py
check 'proto lint' proto_lint
check 'compatibility of v1' python3 tools/lint/proto_compat.py
check 'file sizes' file_sizes
check 'documents' documents
check 'comments' python3 tools/lint/comments.py
check 'pictures of the architecture' python3 tools/ways.py --check
check 'versions of Debian packages' python3 tools/lint/package_versions.py
check 'shellcheck' shell_check
check 'gofmt' gofmt_check
check 'what the command line links' command_line
check 'no test asserts wall-clock time' wall_clock
if [[ ${1:-} != fast ]]; then
  check 'generated Go code' generated_go
  check 'staticcheck' staticcheck
  vulndb=${VULNDB:-build/vulndb}
  if [[ -n ${VULNDB:-} || -e $vulndb/index/db.json ]]; then
    check 'govulncheck' vulnerabilities
  else
    echo 'skip  govulncheck: no copy of the vulnerability database: make vulncheck VULNDB=FOLDER'
  fi
fi

if ((${#failed[@]} > 0)); then
  printf 'lint: %d checks failed: %s\n' ${#failed[@]} "$(printf '%s, ' "${failed[@]}" | sed 's/, $//')"
  exit 1
fi
printf 'lint: clean, %d s\n' $SECONDS
