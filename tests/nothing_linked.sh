#!/usr/bin/env bash
# usage: nothing_linked.sh FILES...   Our own files name no library of a GPU vendor: those are found at run time.
set -euo pipefail
for file in "$@"; do
  if found=$(readelf -d "$file" | grep NEEDED | grep -iE 'cuda|nvrtc|cublas|cudart|OpenCL'); then
    echo "$file asks for: $found"
    exit 1
  fi
  readelf -d "$file" | grep -q NEEDED || { echo "$file: readelf shows no libraries"; exit 1; }
done
