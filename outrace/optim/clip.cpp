#include "outrace/optim/clip.h"

#include <algorithm>
#include <limits>

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/ops.h"

namespace outrace::optim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Slot*> slots_with_gradient(const std::vector<Tensor>& parameters) {
  std::vector<Slot*> out;
  for (const Tensor& p : parameters)
    if (Slot& s = p.slot(); s.grad && std::find(out.begin(), out.end(), &s) == out.end()) out.push_back(&s);
  return out;
}

// What backward() would have left there. A stored gradient that is pending again must be stored by the next flush.
void set_gradient(Slot& slot, const Tensor& g) {
  Recorder& recorder = Recorder::current();
  const bool stored = slot.grad->is_leaf();
  if (stored && recorder.capture)
    fail(ErrorKind::state, "[clip] a gradient from before the captured step would be clipped; call zero_grad() first");
  slot.grad = g.node_ptr();
  if (stored) recorder.graded.emplace_back(&slot);
}

Tensor p_norm(const std::vector<Tensor>& gradients, double p, Device device) {
  Tensor largest;
  for (const Tensor& g : gradients) {
    const Tensor here = max(abs(g)).to(device);
    largest = largest.defined() ? maximum(largest, here) : here;
  }
  if (p == kInfinity) return largest;
  // The unit: the largest magnitude, where one can divide by it.
  const Tensor unit = select(largest > 0, select(largest < kInfinity, largest, 1.0), 1.0);
  Tensor total;
  for (const Tensor& g : gradients) {
    const Tensor share = g / unit.to(g.device());
    const Tensor power = p == 2 ? square(share) : p == 1 ? abs(share) : exp(log(abs(share)) * p);
    const Tensor here = sum(power).to(device);
    total = total.defined() ? total + here : here;
  }
  return unit * (p == 2 ? sqrt(total) : p == 1 ? total : exp(log(total) / p));
}

}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, const ClipOptions& options,
                       std::source_location where) {
  const double p = options.norm_type;
  if (!(p > 0)) fail(ErrorKind::value, "[clip_grad_norm_] norm_type must be positive; got ", p, call_site(where));
  if (!(max_norm >= 0))
    fail(ErrorKind::value, "[clip_grad_norm_] max_norm must not be negative; got ", max_norm, call_site(where));
  NoGrad off;
  const std::vector<Slot*> slots = slots_with_gradient(parameters);
  DType type = DType::f32;
  std::vector<Tensor> gradients;  // those that have elements, in one type
  for (const Slot* s : slots)
    if (s->grad->dtype == DType::f64) type = DType::f64;
  for (const Slot* s : slots)
    if (s->grad->shape.numel() > 0) gradients.push_back(cast(Tensor(s->grad), type));
  if (gradients.empty()) return zeros(Shape{}, {.dtype = type});
  const Tensor norm = p_norm(gradients, p, gradients[0].device());
  if (options.error_if_nonfinite && !std::isfinite(norm.item()))
    fail(ErrorKind::diverged, "[clip_grad_norm_] the norm of the gradients is not finite; got ", norm.item(),
         call_site(where));
  const Tensor factor = select(norm < kInfinity, minimum(max_norm / (norm + 1e-6), 1.0), 1.0);
  size_t next = 0;
  for (Slot* s : slots) {
    if (s->grad->shape.numel() == 0) continue;
    const Tensor& g = gradients[next++];
    set_gradient(*s, cast(g * factor.to(g.device()), s->grad->dtype));
  }
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double value) {
  if (!(value >= 0)) fail(ErrorKind::value, "[clip_grad_value_] value must not be negative; got ", value);
  NoGrad off;
  for (Slot* s : slots_with_gradient(parameters)) set_gradient(*s, minimum(maximum(Tensor(s->grad), -value), value));
}

}  // namespace outrace::optim
