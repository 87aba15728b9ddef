#include "outrace/backend/gpu/axes.h"

#include <algorithm>
#include <bit>

namespace outrace::gpu {

std::vector<Axis> axes_of(const Shape& shape, int64_t axes, bool reduced) {
  const Strides dense = contiguous_strides(shape);
  std::vector<Axis> out;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1 || ((axes >> i & 1) != 0) != reduced) continue;
    if (!out.empty() && out.back().stride == dense[i] * shape[i])
      out.back() = {out.back().size * shape[i], dense[i]};
    else
      out.push_back({shape[i], dense[i]});
  }
  if (out.empty()) out.push_back({1, 0});
  return out;
}

int64_t count_of(const std::vector<Axis>& axes) {
  int64_t n = 1;
  for (const Axis& a : axes) n *= a.size;
  return n;
}

void append_axes(const std::vector<Axis>& axes, std::vector<Arg>& args) {
  args.push_back(Arg::i64(axes[0].stride));
  for (size_t k = 1; k < axes.size(); ++k)
    for (const int64_t v : {axes[k].size, magic_of(axes[k].size), axes[k].stride}) args.push_back(Arg::i64(v));
}

int64_t magic_of(int64_t d) {
  d = std::max<int64_t>(d, 1);
  const int shift = std::bit_width(static_cast<uint64_t>(d - 1));
  if (shift > 31) return 0;  // such an axis is walked with i64, which takes no magic
  const uint64_t divisor = static_cast<uint64_t>(d);
  const uint64_t multiplier = ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - divisor)) / divisor + 1;
  return static_cast<int64_t>((multiplier & 0xffffffffu) | static_cast<uint64_t>(shift) << 32);
}

}  // namespace outrace::gpu
