// Random tensors.
#include "outrace/backend/gpu/kernel_rows.h"

namespace outrace::gpu {
namespace {

const char* random_why_not(const Call& call, const Plan&, const DeviceFacts&) {
  if (call.scalars.size() != 2) return "needs a seed and a serial";
  if (const char* why = whole_why_not(call, 0)) return why;
  const bool integers = std::get<RandomAttrs>(call.attrs).distribution == Distribution::integer;
  return integers || is_float(call.dtype) ? nullptr : "uniform and normal numbers are floats";
}

void make_random(const Call& call, CallBuilder& b) {
  const auto& attrs = std::get<RandomAttrs>(call.attrs);
  const bool normal = attrs.distribution == Distribution::normal;
  const int64_t count = call.shape.numel();
  DType drawn = call.dtype == DType::f64 ? DType::f64 : DType::f32;
  Arg first, second;
  if (attrs.distribution == Distribution::integer) {
    drawn = DType::i64;
    first = Arg::i64(static_cast<int64_t>(attrs.a));
    second = Arg::i64(static_cast<int64_t>(static_cast<uint64_t>(static_cast<int64_t>(attrs.b)) -
                                           static_cast<uint64_t>(first.integer)));
  } else if (drawn == DType::f64) {
    first = Arg::f64(attrs.a);
    second = Arg::f64(normal ? attrs.b : attrs.b - attrs.a);
  } else {
    const float a = static_cast<float>(attrs.a), other = static_cast<float>(attrs.b);
    first = Arg::f32(a);
    second = Arg::f32(normal ? other : other - a);
  }
  KernelText text("random.cl");
  text.define("OUT", call.dtype).define("DRAWN", drawn).define("NORMAL", int64_t{normal});
  const int64_t per_block = drawn == DType::f32 ? 4 : 2;
  b.launch(
      text, "random", {.groups = {groups_for(groups_for(count, per_block)), 1, 1}},
      {b.whole(call.result), Arg::i64(count), b.scalar(call.scalars[0]), b.scalar(call.scalars[1]), first, second});
}

const KernelRow kRows[] = {
    {&kRandom, "philox", random_why_not, make_random},
};

}  // namespace

std::span<const KernelRow> random_kernels() { return kRows; }

}  // namespace outrace::gpu
