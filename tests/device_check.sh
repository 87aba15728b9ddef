#!/usr/bin/env bash
# usage: device_check.sh SOURCE_DIR BIN_DIR WORK_DIR
# tools/device-check on the first OpenCL device (PoCL), in short, so that it works on the day when a GPU is there.
set -euo pipefail
source=$1 bin=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
devices=$("$bin/outrace" devices --quiet 2>/dev/null)
grep -q '^opencl:0' <<<"$devices" || { echo "no OpenCL device here"; exit 77; }
export OUTRACE_BIN=$bin
"$source/tools/device-check" --device opencl:0 --seconds 100 --out "$work/out" ||
  { cat "$work/out/summary.md"; exit 1; }
for part in parity race steps gemm memory; do
  grep -q "^## $part" "$work/out/summary.md" || { echo "no $part in the summary"; exit 1; }
  grep -q "\"$part\":" "$work/out/results.json" || { echo "no $part in the results"; exit 1; }
done
grep -q '[1-9][0-9]* cases compared, 0 beyond' "$work/out/summary.md"
grep -q 'seed: .* us a step, 9 calls' "$work/out/summary.md"
python3 -m json.tool "$work/out/results.json" >/dev/null
# A part alone, from the folder that goes to the other machine; and mistakes.
"$source/tools/device-pack" "$work/device-pack"
env -u OUTRACE_BIN "$work/device-pack/device-check" --device opencl:0 --only steps --seconds 30 --out "$work/one"
grep -q '"seed"' "$work/one/steps.json"
"$source/tools/device-check" --only nothing --out "$work/one" && exit 1
"$source/tools/device-check" --device cuda:9 --only steps --seconds 20 --out "$work/none" && exit 1
grep -q 'FAULT.*cuda:9' "$work/none/summary.md"
