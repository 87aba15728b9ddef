// Matrix products, batched and strided, with what follows fused in.
#include <algorithm>

#include "outrace/backend/gpu/kernel_rows.h"

namespace outrace::gpu {
namespace {

const char* matmul_why_not(const Call& call, const Plan& plan, const DeviceFacts&) {
  if (call.operands.size() != 2) return "multiplies two matrices";
  for (const View& v : call.operands) {
    if (v.value < 0) return "an operand is a scalar without memory";
    if (compute_of(stored(v, plan)) != compute_of(call.dtype)) return "operands and result compute in one type";
  }
  if (call.layout != Layout::plain) return "packed weights are the CPU's";
  return nullptr;
}

// Large tiles read less, small ones fill more of the card; the choice is by size alone.
constexpr int64_t kEnoughGroups = 128;  // about one for each unit of a large card
// Fewer groups than this leave most of a card idle: a long k is then split, in parts of this length at least.
constexpr int64_t kFewGroups = 64, kLongK = 1024, kPart = 256;

void make_matmul(const Call& call, CallBuilder& b) {
  const View &left = call.operands[0], &right = call.operands[1];
  const int64_t batch = call.operand_shapes[0][0], m = call.operand_shapes[0][1], k = call.operand_shapes[0][2];
  const int64_t n = call.operand_shapes[1][2];
  if (batch * m * n == 0) return;
  const DType type = compute_of(call.dtype);
  const int64_t tile = batch * groups_for(m, 64) * groups_for(n, 64) >= kEnoughGroups && m > 32 && n > 32 ? 64 : 32;
  const int64_t row_tiles = groups_for(m, tile), column_tiles = groups_for(n, tile);
  const int64_t groups = batch * row_tiles * column_tiles;
  int64_t parts = 1, length = k;
  if (groups < kFewGroups && k >= kLongK) {
    length = groups_for(groups_for(k, std::min(kEnoughGroups / groups, k / kPart)), 16) * 16;
    parts = groups_for(k, length);
  }

  KernelText text("matmul.cl");
  text.define("A", stored(left, b.plan())).define("B", stored(right, b.plan())).define("COMPUTE", type);
  text.define("TILE", tile).define("SPLIT", int64_t{parts > 1});
  text.define("A_ALONG_K", int64_t{left.strides[2] == 1 || left.strides[1] != 1});
  text.define("B_ALONG_K", int64_t{right.strides[2] != 1 && right.strides[1] == 1});
  text.index(batch * m * n);
  text.epilogue(finish(call, type), b.plan());
  text.define("FINISH(i, row, column, value)",
              text.epilogue_takes(n) ? "EPILOGUE_AT(i, row, column, value)" : "EPILOGUE(i, value)");

  std::vector<Arg> args = {b.array(left), b.array(right)};
  for (const int64_t v : {batch, m, n, k, length, row_tiles, column_tiles, left.strides[0], left.strides[1],
                          left.strides[2], right.strides[0], right.strides[1], right.strides[2]})
    args.push_back(Arg::i64(v));
  const Grid grid{.groups = {groups, parts, 1}, .local = {static_cast<int>(tile), static_cast<int>(tile / 16), 1}};
  if (parts == 1) return b.launch(text, "matmul", grid, std::move(args), CallBuilder::epilogue);
  const Arg partial = b.scratch(parts * batch * m * n * size_of(type));
  args.push_back(partial);
  b.launch(text, "matmul", grid, std::move(args));
  b.launch(text, "matmul_fold", {.groups = {groups_for(batch * m * n), 1, 1}},
           {partial, Arg::i64(batch * m * n), Arg::i64(parts)}, CallBuilder::epilogue);
}

const KernelRow kRows[] = {
    {&kMatmul, "tiles", matmul_why_not, make_matmul},
};

}  // namespace

std::span<const KernelRow> matmul_kernels() { return kRows; }

}  // namespace outrace::gpu
