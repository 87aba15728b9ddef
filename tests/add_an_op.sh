#!/usr/bin/env bash
# Follows docs/add-an-op.md: puts its row into a copy of the tree, builds that, and checks the new op forward, backward and fused.
# usage: add_an_op.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
source=$1 build=$2
mkdir -p "$build/tree"
# Only what changed is copied, so that a second run builds little.
for part in outrace cmake data tests CMakeLists.txt; do
  cp -ru "$source/$part" "$build/tree/"
done
cp "$source/outrace/ops/ops.def" "$build/ops.def.new"
row=$(sed -n '/^```row$/,/^```$/p' "$source/docs/add-an-op.md" | sed '1d;$d')
[[ -n $row ]] || { echo "docs/add-an-op.md has no row block"; exit 1; }
# A new row stands behind the last of its kind.
last=$(grep -n '^UNARY' "$build/ops.def.new" | tail -n 1 | cut -d: -f1)
{ head -n "$last" "$build/ops.def.new"; echo "$row"; tail -n "+$((last + 1))" "$build/ops.def.new"; } >"$build/ops.def.with_row"
cmp -s "$build/ops.def.with_row" "$build/tree/outrace/ops/ops.def" || cp "$build/ops.def.with_row" "$build/tree/outrace/ops/ops.def"
cp "$source/tests/add_an_op.cpp.in" "$build/tree/tests/add_an_op_test.cpp"
cmake -S "$build/tree" -B "$build/out" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DOUTRACE_BUILD_APP=OFF >/dev/null
cmake --build "$build/out" --target add_an_op_test gradient_test
"$build/out/bin/add_an_op_test"
"$build/out/bin/gradient_test"
