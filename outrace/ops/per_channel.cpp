#include "outrace/ops/per_channel.h"

#include "outrace/graph/scope.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/movement.h"

namespace outrace {

Tensor per_channel(const Tensor& t, const Tensor& x) {
  Shape shape = Shape{1, t.numel()};
  for (int i = 2; i < x.rank(); ++i) shape = shape.inserted(i, 1);
  return reshape(t, shape);
}

Tensor scaled_per_channel(Tensor y, const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) y = y * per_channel(weight, y);
  return bias.defined() ? y + per_channel(bias, y) : y;
}

void check_channels(const char* op, const Tensor& x, std::initializer_list<const Tensor*> each,
                    std::source_location where) {
  if (!is_float(x.dtype()))
    fail(ErrorKind::dtype, "[", op, "] needs floating point; got ", name_of(x.dtype()), call_site(where));
  if (x.rank() < 2) fail(ErrorKind::shape, "[", op, "] needs [N, C, ...]; got ", x.shape(), call_site(where));
  for (const Tensor* t : each)
    if (t->defined() && !(t->shape() == Shape{x.shape()[1]}))
      fail(ErrorKind::shape, "[", op, "] weight, bias and statistics must be [", x.shape()[1], "], one a channel; got ",
           t->shape(), call_site(where));
}

}  // namespace outrace
