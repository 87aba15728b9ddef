// Ops that move elements: cat, pad, fold. (relayout stands with the copies in kernels_elementwise.cpp.)
#include <algorithm>

#include "outrace/backend/gpu/places.h"

namespace outrace::gpu {
namespace {

// ---- cat ----

constexpr size_t kParts = 8;  // of a launch; two or fewer have a text of their own

const char* cat_why_not(const Call& call, const Plan&, const DeviceFacts&) {
  return whole_why_not(call, call.operands.size());
}

struct Part {
  const View* view;
  int64_t bytes = 1, step = 0;  // of a row's piece, and from piece to piece
};

std::vector<Part> parts_of(const Call& call) {
  const int axis = static_cast<int>(std::get<ConcatAttrs>(call.attrs).axis);
  const int64_t element = size_of(call.dtype);
  std::vector<Part> parts;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const Shape& s = call.operand_shapes[k];
    Part part{&call.operands[k], element};
    for (int i = axis; i < s.rank(); ++i) part.bytes *= s[i];
    // The passes made sure that one stride walks all axes before this one.
    for (int i = axis - 1; i >= 0 && part.step == 0; --i)
      if (s[i] != 1) {
        part.step = call.operands[k].strides[i] * element;
        break;
      }
    if (part.bytes > 0) parts.push_back(part);
  }
  return parts;
}

// A launch a part: no element asks where it comes from.
constexpr int64_t kLongPiece = 256, kCut = 8 * kGroup;

void launch_pieces(const Call& call, const std::vector<Part>& parts, int64_t rows, int64_t whole, int64_t unit,
                   CallBuilder& b) {
  KernelText text("cat.cl");
  text.define("MOVED", moved_type(unit)).define("PARTS", 1);
  int64_t skipped = 0;
  for (const Part& p : parts) {
    const int64_t columns = p.bytes / unit, cuts = groups_for(columns, kCut);
    std::vector<Arg> args{b.array(*p.view), b.whole(call.result)};
    for (const int64_t v : {columns, cuts, p.step / unit, whole / unit, skipped}) args.push_back(Arg::i64(v));
    b.launch(text, "copy_pieces", {.groups = {rows * cuts, 1, 1}}, std::move(args));
    skipped += columns;
  }
}

void make_cat(const Call& call, CallBuilder& b) {
  const int axis = static_cast<int>(std::get<ConcatAttrs>(call.attrs).axis);
  if (call.shape.numel() == 0) return;
  const std::vector<Part> parts = parts_of(call);
  const int64_t element = size_of(call.dtype);
  int64_t rows = 1, whole = 0, unit = 8, farthest = 0;
  for (int i = 0; i < axis; ++i) rows *= call.shape[i];
  for (const Part& p : parts) {
    whole += p.bytes;
    unit = std::min(unit, widest_unit({p.bytes, p.step, p.view->offset * element}));
    farthest = std::max(farthest, rows * p.step + p.bytes);
  }
  const bool long_pieces =
      parts.size() <= kParts && std::all_of(parts.begin(), parts.end(), [&](const Part& p) {
        return p.bytes / unit >= kLongPiece && rows * groups_for(p.bytes / unit, kCut) < kSmallSpace;
      });
  if (long_pieces) return launch_pieces(call, parts, rows, whole, unit, b);
  int64_t skipped = 0;
  for (size_t first = 0; first < parts.size();) {
    const size_t some = std::min(kParts, parts.size() - first), slots = some <= 2 ? 2 : kParts;
    KernelText text("cat.cl");
    text.define("MOVED", moved_type(unit)).define("PARTS", static_cast<int64_t>(slots));
    text.index(std::max(rows * whole, farthest) / unit + kMovedSlack);
    int64_t width = 0;
    std::vector<Arg> pieces;
    for (size_t k = 0; k < slots; ++k) {
      // A slot beyond the parts begins behind every column, so that nothing is taken from it.
      const Part& p = parts[first + std::min(k, some - 1)];
      pieces.insert(pieces.end(), {b.array(*p.view), Arg::i64(p.step / unit), Arg::i64(width)});
      if (k < some) width += p.bytes / unit;
    }
    std::vector<Arg> args{b.whole(call.result), Arg::i64(rows * width), Arg::i64(whole / unit), Arg::i64(skipped)};
    append_divisor(width, args);
    args.insert(args.end(), pieces.begin(), pieces.end());
    b.launch(text, "cat", moved_grid(rows * width), std::move(args));
    skipped += width;
    first += some;
  }
}

// ---- pad ----

const char* one_why_not(const Call& call, const Plan&, const DeviceFacts&) { return whole_why_not(call, 1); }

struct PadAxis {
  int64_t from, to, start, step;
  bool whole() const { return from == to && start == 0 && step == 1; }
};

// Innermost first; an axis that x fills whole joins the one outside it, in units of the whole.
std::vector<PadAxis> pad_axes(const Shape& from, const Shape& to, const SliceAttrs& attrs) {
  std::vector<PadAxis> axes;
  for (int i = to.rank() - 1; i >= 0; --i) {
    PadAxis a{from[i], to[i], attrs.start[i], from[i] <= 1 ? 1 : attrs.step[i]};
    if (!axes.empty() && axes.back().whole() && a.step == 1) {
      const int64_t unit = axes.back().to;
      axes.back() = {a.from * unit, a.to * unit, a.start * unit, 1};
    } else if (axes.empty() || !(a.from == 1 && a.to == 1 && a.start == 0)) {
      axes.push_back(a);
    }
  }
  if (axes.empty()) axes.push_back({1, 1, 0, 1});
  return axes;
}

void make_pad(const Call& call, CallBuilder& b) {
  const auto& attrs = std::get<SliceAttrs>(call.attrs);
  const int64_t count = call.shape.numel();
  if (count == 0) return;
  const std::vector<PadAxis> axes = pad_axes(call.operand_shapes[0], call.shape, attrs);
  const bool steps = std::any_of(axes.begin(), axes.end(), [](const PadAxis& a) { return a.step != 1; });
  KernelText text("pad.cl");
  text.define("MOVED", moved_type(size_of(call.dtype))).define("AXES", static_cast<int64_t>(axes.size()));
  text.define("STEPS", int64_t{steps}).index(count + kMovedSlack);
  std::vector<Arg> args{b.array(call.operands[0]), b.whole(call.result), Arg::i64(count),
                        Arg::i64(bits_of(attrs.fill, call.dtype))};
  for (const PadAxis& a : axes) {
    append_divisor(a.to, args);
    for (const int64_t v : {a.from, a.start, a.step}) args.push_back(Arg::i64(v));
  }
  b.launch(text, "pad", moved_grid(count), std::move(args));
}

// ---- fold ----

// x windows [outer axes, windows, inner axes, length].
void make_fold(const Call& call, CallBuilder& b) {
  const auto& attrs = std::get<UnfoldAttrs>(call.attrs);
  const int axis = static_cast<int>(attrs.axis);
  const Shape& windows = call.operand_shapes[0];
  const int64_t count = call.shape.numel();
  if (count == 0) return;
  const DType sum = compute_of(call.dtype);
  KernelText text("fold_windows.cl");
  text.define("T", call.dtype).define("ACC", sum).index(count + kGroup);
  text.define("SUM(a, b)", sum == DType::i64 ? "(i64)((u64)(a) + (u64)(b))" : "((a) + (b))");
  std::vector<Arg> args{b.array(call.operands[0]), b.whole(call.result)};
  for (const int64_t v : {count, windows[axis], windows.back(), attrs.step}) args.push_back(Arg::i64(v));
  append_divisor(call.shape[axis], args);
  append_divisor(contiguous_strides(call.shape)[axis], args);
  b.launch(text, "fold_windows", {.groups = {groups_for(count), 1, 1}}, std::move(args));
}

const KernelRow kRows[] = {
    {&kCat, "pieces", cat_why_not, make_cat},
    {&kPad, "pad", one_why_not, make_pad},
    {&kFold, "windows", one_why_not, make_fold},
};

}  // namespace

std::span<const KernelRow> movement_kernels() { return kRows; }

}  // namespace outrace::gpu
