// Random tensors as calls of a plan.
#include "outrace/backend/cpu/fill.h"
#include "outrace/backend/cpu/kernel_rows.h"

namespace outrace::cpu {
namespace {

const char* random_why_not(const Call& call, const Plan&) {
  if (call.scalars.size() != 2) return "needs a seed and a serial";
  if (const char* why = whole_why_not(call, 0)) return why;
  const bool integers = std::get<RandomAttrs>(call.attrs).distribution == Distribution::integer;
  return integers || is_float(call.dtype) ? nullptr : "uniform and normal numbers are floats";
}

class RandomCall final : public ResolvedCall {
 public:
  RandomCall(const Call& call, const Plan&)
      : attrs_(std::get<RandomAttrs>(call.attrs)),
        dtype_(call.dtype),
        count_(call.shape.numel()),
        seed_(call.scalars[0]),
        serial_(call.scalars[1]),
        result_{call.result, 0} {}
  void run(const Frame& f) override {
    const RandomState state{static_cast<uint64_t>(f.scalars[seed_].integer),
                            static_cast<uint64_t>(f.scalars[serial_].integer)};
    fill_random(attrs_, state, dtype_, result_.at(f), count_);
  }

 private:
  RandomAttrs attrs_;
  DType dtype_;
  int64_t count_;
  int seed_, serial_;
  Place result_;
};

const KernelRow kRows[] = {
    {&kRandom, "philox", random_why_not, make<RandomCall>},
};

}  // namespace

std::span<const KernelRow> random_kernels() { return kRows; }

}  // namespace outrace::cpu
