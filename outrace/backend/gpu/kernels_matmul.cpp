// Matrix products, batched and strided, with what follows fused in.
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

struct Tiles {
  int64_t m, n;
};

// Large tiles read less, small ones fill more of the card; the choice is by size alone.
Tiles tiles_for(int64_t batch, int64_t m, int64_t n) {
  constexpr int64_t kEnoughGroups = 128;  // of 64 x 64: about one for each unit of a large card
  if (batch * groups_for(m, 64) * groups_for(n, 64) >= kEnoughGroups && m > 32 && n > 32) return {64, 64};
  return m > 16 || n > 16 ? Tiles{32, 32} : Tiles{16, 16};
}

void make_matmul(const Call& call, CallBuilder& b) {
  const View &left = call.operands[0], &right = call.operands[1];
  const int64_t batch = call.operand_shapes[0][0], m = call.operand_shapes[0][1], k = call.operand_shapes[0][2];
  const int64_t n = call.operand_shapes[1][2];
  if (batch * m * n == 0) return;
  const DType type = compute_of(call.dtype);
  const Tiles tile = tiles_for(batch, m, n);

  KernelText text("matmul.cl");
  text.define("A", stored(left, b.plan())).define("B", stored(right, b.plan())).define("COMPUTE", type);
  text.define("TILE_M", tile.m).define("TILE_N", tile.n);
  text.define("A_ALONG_K", int64_t{left.strides[2] == 1 || left.strides[1] != 1});
  text.define("B_ALONG_K", int64_t{right.strides[2] != 1 && right.strides[1] == 1});
  text.define("MULTIPLY_ADD(x, y, sum)",
              type == DType::i64 ? "(i64)((u64)(sum) + (u64)(x) * (u64)(y))" : "fma(x, y, sum)");
  text.index(batch * m * n);
  text.epilogue(finish(call, type), b.plan());

  const int64_t row_tiles = groups_for(m, tile.m), column_tiles = groups_for(n, tile.n);
  std::vector<Arg> args = {b.array(left), b.array(right)};
  for (const int64_t v : {m, n, k, row_tiles, column_tiles, left.strides[0], left.strides[1], left.strides[2],
                          right.strides[0], right.strides[1], right.strides[2]})
    args.push_back(Arg::i64(v));
  b.launch(text, "matmul", {.groups = {batch * row_tiles * column_tiles, 1, 1}, .local = {16, 16, 1}}, std::move(args),
           CallBuilder::epilogue);
}

const KernelRow kRows[] = {
    {&kMatmul, "tiles", matmul_why_not, make_matmul},
};

}  // namespace

std::span<const KernelRow> matmul_kernels() { return kRows; }

}  // namespace outrace::gpu
