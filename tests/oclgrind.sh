#!/usr/bin/env bash
# usage: oclgrind.sh PROGRAM   (build/bin/oclgrind_ops)
# Runs the op list's kernels under oclgrind, which checks every access to memory and finds data races; ends with 77
# where oclgrind is not installed (Debian: apt-get install oclgrind). First it must see two planted faults.
# Left out: overruns from one temporary into another, as temporaries share one block; and f16.
set -uo pipefail
program=$1
library=$(ls /usr/lib/oclgrind/liboclgrind-rt-icd.so /usr/lib/*/liboclgrind-rt-icd.so \
  /usr/local/lib/liboclgrind-rt-icd.so 2>/dev/null | head -n 1)
if [[ -z $library ]]; then
  echo "oclgrind is not installed"
  exit 77
fi

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/vendors"
echo "$library" >"$folder/vendors/oclgrind.icd"
export OCL_ICD_VENDORS=$folder/vendors/ OCLGRIND_DATA_RACES=1
export OCLGRIND_BUILD_OPTIONS=-cl-opt-disable
export OUTRACE_EXACT_BLOCKS=1 OUTRACE_KERNEL_CACHE=$folder/kernels

fail() {
  printf '%s\n' "$@"
  exit 1
}

platform=$("$program" platform)
[[ $platform == Oclgrind ]] || fail "the platform is not Oclgrind: $platform"
[[ $("$program" race 2>&1) == *"data race at local memory"* ]] || fail "a planted race went unnoticed"
[[ $("$program" overrun 2>&1) == *"Invalid write of size 4 at global memory"* ]] ||
  fail "a planted overrun went unnoticed"

# A part a core.
parts=(paths "ops 0 2" "ops 1 2")
jobs=()
for k in "${!parts[@]}"; do
  # shellcheck disable=SC2086
  "$program" ${parts[k]} >"$folder/$k.out" 2>"$folder/$k.err" &
  jobs+=($!)
done
failed=0
for k in "${!parts[@]}"; do
  wait "${jobs[k]}" || failed=1
  echo "${parts[k]}: $(sort -u "$folder/$k.out")"
  if grep -qE "data race|Invalid|divergence|Uninitialized|OCLGRIND|Unaligned" "$folder/$k.err"; then
    failed=1
    head -n 60 "$folder/$k.err"
  fi
done
exit $failed
