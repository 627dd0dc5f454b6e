#!/bin/sh
# Generates shim/api from proto/loadline/v1, proto/grpcplugin and proto/externalgrpc, with the protoc plugins that
# go.mod pins. Needs protoc (Debian: protobuf-compiler) and Go.
set -eu
shim=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
root=$(dirname -- "$shim")
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
cd "$shim"
GOWORK=off go build -o "$bin/" google.golang.org/protobuf/cmd/protoc-gen-go \
  google.golang.org/grpc/cmd/protoc-gen-go-grpc
cd "$root/proto"
PATH="$bin:$PATH" protoc -I . \
  --go_out="$shim" --go_opt=module=loadline.dev/shim \
  --go-grpc_out="$shim" --go-grpc_opt=module=loadline.dev/shim \
  loadline/v1/*.proto grpcplugin/*.proto externalgrpc/*.proto
