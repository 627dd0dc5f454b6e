#!/bin/sh
# Runs build/test/overload/overload_bench on every *-hourly-max.csv.gz of the folder DATA. Without DATA it says where
# such files come from. Arguments go to the program, such as --orders=5.
set -eu
if [ -z "${DATA:-}" ]; then
  cat <<'TEXT'
DATA=FOLDER names a folder with files NAME-hourly-max.csv.gz. The trace is not part of this repository: it is GWA-T-12
"Rnd" of Bitbrains (Grid Workloads Archive; Shen, van Beek, Iosup, CCGrid 2015), 500 machines of a business data centre.
A line is one machine of a month: number, provisioned MHz, provisioned MiB, and for each hour the peak of CPU and memory
as "cpu:memory", in thousandths of what is provisioned, separated by blanks.
TEXT
  exit 0
fi
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
found=false
for file in "$DATA"/*-hourly-max.csv.gz; do
  [ -e "$file" ] || continue
  found=true
  gzip -dc "$file" > "$scratch/$(basename "$file" -hourly-max.csv.gz)"
done
if [ "$found" = false ]; then
  echo "DATA=$DATA: has no file *-hourly-max.csv.gz" >&2
  exit 2
fi
cmake --build --preset release --target overload_bench >&2
"$root/build/test/overload/overload_bench" "$@" "$scratch"/*
