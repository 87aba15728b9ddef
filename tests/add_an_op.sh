#!/usr/bin/env bash
# Follows docs/add-an-op.md: puts its row into a copy of the tree, builds that, and checks the new op.
# usage: add_an_op.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
source=$1 build=$2
mkdir -p "$build/tree"
# Only what changed is copied, so that a second run builds little.
for part in outrace cmake data tests CMakeLists.txt; do
  cp -ru "$source/$part" "$build/tree/"
done
row=$(sed -n '/^```row$/,/^```$/p' "$source/docs/add-an-op.md" | sed '1d;$d')
[[ -n $row ]] || { echo "docs/add-an-op.md has no row block"; exit 1; }
# The new row stands behind the last of its kind; the copy is touched only when it changes.
list=outrace/ops/ops.def
last=$(grep -n '^UNARY' "$source/$list" | tail -n 1 | cut -d: -f1)
sed "${last}r /dev/stdin" "$source/$list" <<<"$row" >"$build/ops.def"
cmp -s "$build/ops.def" "$build/tree/$list" || cp "$build/ops.def" "$build/tree/$list"
cp "$source/tests/add_an_op.cpp.in" "$build/tree/tests/add_an_op_test.cpp"
cmake -S "$build/tree" -B "$build/out" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DOUTRACE_BUILD_APP=OFF >/dev/null
cmake --build "$build/out" --target add_an_op_test gradient_test
"$build/out/bin/add_an_op_test"
"$build/out/bin/gradient_test"
