#!/usr/bin/env bash
# Looks for known vulnerabilities that our Go programs reach, by govulncheck and a copy of the Go vulnerability
# database: a folder as https://vuln.go.dev/vulndb.zip unpacks to, with index/db.json. Needs no network.
#   tools/vulncheck.sh DATABASE [MODULE FOLDER...]
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
database=$(cd "${1:?which database? A folder with index/db.json}" && pwd)
shift
if [[ ! -e $database/index/db.json ]]; then
  echo "vulncheck: $database has no index/db.json: it is no copy of the vulnerability database" >&2
  exit 1
fi
modules=("$@")
((${#modules[@]} > 0)) || modules=("$top/shim" "$top/shim/cmd/loadline-scheduler" "$top/tools/release")

readonly tool=$top/build/tools/govulncheck
mkdir -p "$top/build/tools"
(cd "$top/tools/lint" && GOWORK=off go build -o "$tool" golang.org/x/vuln/cmd/govulncheck)
echo "vulncheck: database of $(sed -E 's/.*"modified": *"([^"]*)".*/\1/' "$database/index/db.json")"
result=0
for module in "${modules[@]}"; do
  [[ $module == "$top"/shim* ]] && workspace=$top/go.work || workspace=off
  (cd "$module" && GOWORK=$workspace "$tool" -db "file://$database" ./...) || result=1
done
exit $result
