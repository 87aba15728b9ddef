// Large matrix products by the vendor's library, where the driver has one. A bias and an activation that the library
// knows are part of its call; anything else follows in a kernel of ours.
#include <algorithm>
#include <optional>

#include "outrace/backend/gpu/kernel_rows.h"
#include "outrace/core/error.h"

namespace outrace::gpu {
namespace {

// Multiplications below which our kernel, with all that follows in it, is as good.
constexpr int64_t kFew = int64_t{1} << 24;
// Terms a sum below which one more pass over the result is felt.
constexpr int64_t kShallow = 128;
constexpr int64_t kEach = 4;

struct Sizes {
  int64_t batch, m, n, k;
};

Sizes sizes_of(const Call& call) {
  const Shape &a = call.operand_shapes[0], &b = call.operand_shapes[1];
  return {a[0], a[1], b[2], a[2]};
}

// An operand as a library takes it: one axis dense, the other at least as long. Axes of one element lie anyhow.
std::optional<Product::Matrix> matrix_of(const View& v, DType dtype, const Sizes& s, int64_t rows, int64_t columns) {
  Product::Matrix out;
  out.dtype = dtype;
  out.batch = s.batch > 1 ? v.strides[0] : 0;
  out.row = rows > 1 ? v.strides[1] : std::max<int64_t>(columns, 1);
  out.column = columns > 1 ? v.strides[2] : 1;
  if (out.batch < 0) return std::nullopt;
  if (rows == 1 && out.column != 1) out.row = 1;
  if (out.column == 1 && out.row >= columns) return out;
  if (out.row == 1 && out.column >= rows) return out;
  return std::nullopt;
}

struct Tail {
  View bias;  // no value: none
  Activation activation = Activation::none;
  int stored = -1;  // the value that gets the result
};

bool is_row(const View& v, const Shape& space, int64_t n) {
  if (space.rank() == 0 || space[space.rank() - 1] != n) return false;
  for (int d = 0; d + 1 < space.rank(); ++d)
    if (space[d] != 1 && v.strides[d] != 0) return false;
  return n == 1 || v.strides[space.rank() - 1] == 1;
}

// What follows a product as the library's own tail: [+ bias] [relu | gelu_tanh], stored densely. The library's GELU is
// the tanh form; the one by erf is not the same function.
std::optional<Tail> tail_of(const Call& call, const Plan& plan, int64_t n) {
  Tail tail;
  const TileProgram& e = call.epilogue;
  if (e.empty()) {
    tail.stored = call.result;
    return tail;
  }
  if (call.result >= 0 || e.stores.size() != 1 || e.stores[0].dtype != call.dtype) return std::nullopt;
  const View& to = e.stores[0].view;
  if (to.offset != 0 || !is_contiguous(to.strides, e.space) || stored(to, plan) != call.dtype) return std::nullopt;
  tail.stored = to.value;
  const int loads = static_cast<int>(e.loads.size());
  int at = -1;  // the register of the value so far
  for (int r = 0; r < loads; ++r)
    if (e.loads[r].kind == TileLoad::Kind::producer) at = r;
  for (size_t i = 0; i < e.instrs.size(); ++i) {
    const TileInstr& in = e.instrs[i];
    if (i == 0 && in.op == Ew::add && (in.x == at || in.z == at)) {
      const int other = in.x == at ? in.z : in.x;
      if (other >= loads || e.loads[other].kind != TileLoad::Kind::view) return std::nullopt;
      const TileLoad& bias = e.loads[other];
      if (bias.dtype != call.dtype || !is_row(bias.view, e.space, n)) return std::nullopt;
      tail.bias = bias.view;
    } else if (i + 1 == e.instrs.size() && in.x == at && (in.op == Ew::relu || in.op == Ew::gelu_tanh)) {
      tail.activation = in.op == Ew::relu ? Activation::relu : Activation::gelu_tanh;
    } else {
      return std::nullopt;
    }
    at = loads + static_cast<int>(i);
  }
  if (e.stores[0].reg != at) return std::nullopt;
  return tail;
}

const char* library_why_not(const Call& call, const Plan& plan, const DeviceFacts& facts) {
  if (!facts.multiplies) return "the driver has no library for products";
  if (call.operands.size() != 2 || call.operands[0].value < 0 || call.operands[1].value < 0)
    return "an operand is a scalar without memory";
  const DType dtype = stored(call.operands[0], plan);
  if (!is_float(dtype) || dtype != stored(call.operands[1], plan) || dtype != call.dtype)
    return "the library takes matrices of one floating type";
  const Sizes s = sizes_of(call);
  if (s.batch * s.m * s.n * s.k < kFew) return "small";
  if (!matrix_of(call.operands[0], dtype, s, s.m, s.k) || !matrix_of(call.operands[1], dtype, s, s.k, s.n))
    return "an operand has no dense axis";
  if (!tail_of(call, plan, s.n) && s.k < kShallow) return "what follows is not in the library, and the sums are short";
  return nullptr;
}

// With the next row that takes the call.
void make_otherwise(const Call& call, CallBuilder& b) {
  for (const KernelRow& row : matmul_kernels())
    if (row.op == call.op && row.why_not(call, b.plan(), b.facts()) == nullptr) return row.make(call, b);
  fail(ErrorKind::device, "[", call.label, "] no kernel for this product");
}

void make_library(const Call& call, CallBuilder& b) {
  const Sizes s = sizes_of(call);
  const View &left = call.operands[0], &right = call.operands[1];
  const DType dtype = stored(left, b.plan());
  Product p;
  p.batch = s.batch;
  p.m = s.m;
  p.n = s.n;
  p.k = s.k;
  p.a = *matrix_of(left, dtype, s, s.m, s.k);
  p.b = *matrix_of(right, dtype, s, s.k, s.n);
  p.a.at = b.array(left);
  p.b.at = b.array(right);
  if (const auto tail = tail_of(call, b.plan(), s.n)) {
    p.c_dtype = dtype;
    p.c = b.whole(tail->stored);
    if (tail->bias.value >= 0) p.bias = b.array(tail->bias);
    p.activation = tail->activation;
    if (auto library = b.product(p)) return b.library(std::move(library));
  }
  // The library's own tail is not for all types and sizes; the plain product nearly is.
  const DType type = compute_of(dtype);
  const int64_t count = s.batch * s.m * s.n;
  p.bias = Arg();
  p.activation = Activation::none;
  p.c_dtype = type;  // unrounded, as our kernels hand it on
  p.c = b.scratch(count * size_of(type));
  auto library = b.product(p);
  if (!library) return make_otherwise(call, b);
  b.library(std::move(library));
  KernelText text("finish.cl");
  text.define("COMPUTE", type).define("EACH", kEach).index(count + kEach * kGroup);
  text.epilogue(finish(call, type), b.plan());
  b.launch(text, "finish", {.groups = {groups_for(count, kGroup * kEach), 1, 1}}, {p.c, Arg::i64(count)},
           CallBuilder::epilogue);
}

const KernelRow kRows[] = {
    {&kMatmul, "library", library_why_not, make_library},
};

}  // namespace

std::span<const KernelRow> library_kernels() { return kRows; }

}  // namespace outrace::gpu
