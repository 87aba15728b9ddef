// Convolution and pooling: an item an element, for any sizes.
#include "outrace/backend/gpu/kernel_rows.h"

namespace outrace::gpu {
namespace {

void append(std::vector<Arg>& args, std::initializer_list<int64_t> numbers) {
  for (const int64_t n : numbers) args.push_back(Arg::i64(n));
}

// ---- convolution ----

const char* conv_why_not(const Call& call, const Plan&, const DeviceFacts&) { return whole_why_not(call, 2); }

void make_conv(const Call& call, CallBuilder& b) {
  const auto& a = std::get<ConvAttrs>(call.attrs);
  const bool to_x = call.op == &kConvInputGrad, to_w = call.op == &kConvWeightGrad;
  const Shape& x = to_x ? call.shape : call.operand_shapes[0];
  const Shape& y = to_x ? call.operand_shapes[0] : to_w ? call.operand_shapes[1] : call.shape;
  const int64_t count = call.shape.numel();
  if (count == 0) return;
  KernelText text("conv.cl");
  text.define("T", call.dtype).define("COMPUTE", compute_of(call.dtype));
  std::vector<Arg> args{b.array(call.operands[0]), b.array(call.operands[1]), b.whole(call.result)};
  append(args, {to_w ? x[0] : count, x[1], x[2], x[3], y[1], y[2], y[3], a.groups, a.kernel[0], a.kernel[1],
                a.stride[0], a.stride[1], a.before[0], a.before[1], a.dilation[0], a.dilation[1]});
  b.launch(text,
           to_x   ? "conv_input_grad"
           : to_w ? "conv_weight_grad"
                  : "conv",
           {.groups = {to_w ? count : groups_for(count), 1, 1}}, std::move(args));
}

// ---- pooling ----

template <size_t operands>
const char* pool_why_not(const Call& call, const Plan& plan, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, operands)) return why;
  if (call.op == &kMaxPool || call.op == &kMaxPoolPick) return nullptr;
  return is_float(stored(call.operands[0], plan)) ? nullptr : "computes floats only";
}

void make_pool(const Call& call, CallBuilder& b) {
  const auto& a = std::get<PoolAttrs>(call.attrs);
  const int64_t count = call.shape.numel();
  if (count == 0) return;
  const bool picks = call.op == &kMaxPool || call.op == &kMaxPoolPick, puts = call.op == &kMaxPoolGrad;
  const DType x = stored(call.operands[0], b.plan());
  KernelText text("pool.cl");
  text.define("MAXIMUM", int64_t{picks || puts}).define("ADAPTIVE", int64_t{a.adaptive});
  text.define("T", x).define("ORDER", compute_of(x)).define("V", call.dtype).define("COMPUTE", compute_of(call.dtype));
  std::vector<Arg> args{b.array(call.operands[0])};
  if (picks || puts) args.push_back(b.array(call.operands.back()));
  args.push_back(b.whole(call.result));
  append(args, {count, a.size[0], a.size[1], call.shape[3], a.count[0], a.count[1], a.kernel[0], a.kernel[1],
                a.stride[0], a.stride[1], a.before[0], a.before[1], a.after[0], a.after[1], a.dilation[0],
                a.dilation[1], a.count_padding});
  const char* name = picks                  ? "max_pool_pick"
                     : puts                 ? "max_pool_grad"
                     : call.op == &kAvgPool ? "avg_pool"
                                            : "avg_pool_grad";
  b.launch(text, name, {.groups = {groups_for(count), 1, 1}}, std::move(args));
}

const KernelRow kRows[] = {
    {&kConv, "items", conv_why_not, make_conv},
    {&kConvInputGrad, "items", conv_why_not, make_conv},
    {&kConvWeightGrad, "groups", conv_why_not, make_conv},
    {&kMaxPool, "items", pool_why_not<1>, make_pool},
    {&kMaxPoolPick, "items", pool_why_not<2>, make_pool},
    {&kMaxPoolGrad, "items", pool_why_not<2>, make_pool},
    {&kAvgPool, "items", pool_why_not<1>, make_pool},
    {&kAvgPoolGrad, "items", pool_why_not<1>, make_pool},
};

}  // namespace

std::span<const KernelRow> image_kernels() { return kRows; }

}  // namespace outrace::gpu
