// The members of Tensor that replace its value by a function of it: record the function, assign its result.
#include <utility>

#include "outrace/graph/scope.h"
#include "outrace/graph/tensor.h"
#include "outrace/ops/ops.h"

namespace outrace {
namespace {

Tensor& put(Tensor& to, const char* op, Tensor value, std::source_location where) {
  if (to.slot().requires_grad && grad_enabled())
    fail(ErrorKind::state, "[", op, "] a leaf that requires a gradient changes in place only under NoGrad; got ",
         to.shape(), " ", name_of(to.dtype()), call_site(where));
  if (!(value.shape() == to.shape()))
    fail(ErrorKind::shape, "[", op, "] the result must have the tensor's shape ", to.shape(), "; got ", value.shape(),
         call_site(where));
  const bool loses = (is_float(value.dtype()) && !is_float(to.dtype())) ||
                     (to.dtype() == DType::boolean && value.dtype() != DType::boolean);
  if (loses)
    fail(ErrorKind::dtype, "[", op, "] the result is ", name_of(value.dtype()), " and does not fit into ",
         name_of(to.dtype()), "; write x = cast(", op, "...) without the underscore", call_site(where));
  if (value.dtype() != to.dtype()) value = cast(At(value, where), to.dtype());
  to.assign(std::move(value), where);
  return to;
}

}  // namespace

#define UNARY(name, ...)                                                  \
  Tensor& Tensor::name##_(std::source_location where)& {                  \
    return put(*this, #name "_", outrace::name(At(*this, where)), where); \
  }
#define BINARY(name, ...)                                                               \
  Tensor& Tensor::name##_(const Tensor& z, std::source_location where)& {               \
    return put(*this, #name "_", outrace::name(At(*this, where), At(z, where)), where); \
  }                                                                                     \
  Tensor& Tensor::name##_(double z, std::source_location where)& {                      \
    return put(*this, #name "_", outrace::name(At(*this, where), z), where);            \
  }
#define COMPARE(...)
#define SELECT(...)
#include "outrace/ops/ops.def"
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT

Tensor& Tensor::clamp_(std::optional<double> low, std::optional<double> high, std::source_location where) & {
  return put(*this, "clamp_", clamp(At(*this, where), low, high), where);
}
Tensor& Tensor::fill_(double value, std::source_location where) & {
  return put(*this, "fill_", full(shape(), value, {.dtype = dtype(), .device = device()}), where);
}
Tensor& Tensor::zero_(std::source_location where) & {
  return put(*this, "zero_", full(shape(), 0, {.dtype = dtype(), .device = device()}), where);
}
Tensor& Tensor::copy_(const Tensor& z, std::source_location where) & {
  const Tensor here = z.device() == device() ? z : to_device(At(z, where), device());
  const Tensor value = cast(At(here, where), dtype());
  Shape all;
  if (!broadcast_shapes(value.shape(), shape(), all) || !(all == shape()))
    fail(ErrorKind::shape, "[copy_] the source must broadcast to ", shape(), "; got ", z.shape(), call_site(where));
  return put(*this, "copy_", value.shape() == shape() ? value : expand(At(value, where), shape()), where);
}

Tensor& Tensor::operator+=(const Tensor& z) { return add_(z); }
Tensor& Tensor::operator-=(const Tensor& z) { return sub_(z); }
Tensor& Tensor::operator*=(const Tensor& z) { return mul_(z); }
Tensor& Tensor::operator/=(const Tensor& z) { return div_(z); }

}  // namespace outrace
