#include "outrace/ops/matmul.h"

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/reduce.h"

namespace outrace {
namespace {

struct Sizes {
  int64_t rows, cols;
};
Sizes sizes_of(const Shape& s, bool transposed) {
  return transposed ? Sizes{s.back(0), s.back(1)} : Sizes{s.back(1), s.back(0)};
}

Shape leading(const Shape& s) { return Shape(s.dims().first(static_cast<size_t>(s.rank() - 2))); }

Shape joined(const Shape& lead, int64_t rows, int64_t cols) {
  return lead.inserted(lead.rank(), rows).inserted(lead.rank() + 1, cols);
}

// y = a^T? b^T?; every derivative is a product of the same kind, so transposes never cost a copy.
Tensor matmul_derivative(const DerivativeArgs& d, int which) {
  const auto& o = std::get<MatmulAttrs>(d.attrs);
  const Tensor &a = d.inputs[0], &b = d.inputs[1], &g = d.g;
  Tensor out;
  if (which == 0)
    out = o.transpose_a ? matmul(b, g, {o.transpose_b, true}) : matmul(g, b, {false, !o.transpose_b});
  else
    out = o.transpose_b ? matmul(g, a, {true, o.transpose_a}) : matmul(a, g, {!o.transpose_a, false});
  return sum_to(out, d.inputs[which].shape());
}

double matmul_flops(std::span<const Shape> inputs, const Shape& output, const Attrs& attrs) {
  return 2.0 * static_cast<double>(output.numel()) *
         static_cast<double>(sizes_of(inputs[0], std::get<MatmulAttrs>(attrs).transpose_a).cols);
}

}  // namespace

Tensor matmul(At at_a, At at_b, const MatmulOptions& options) {
  const Tensor &a = at_a.tensor, &b = at_b.tensor;
  const std::source_location where = at_a.where;
  if (a.rank() < 1 || b.rank() < 1 || (a.rank() == 1 && options.transpose_a) || (b.rank() == 1 && options.transpose_b))
    fail(ErrorKind::shape, "[matmul] needs an axis on each side, two where it is transposed; got ", a.shape(), " and ",
         b.shape(), call_site(where));
  if (a.rank() == 1) {
    const Tensor row = reshape(At(a, where), Shape{1, a.numel()});
    const Tensor y = matmul(At(row, where), at_b, options);
    return reshape(At(y, where), y.shape().without(b.rank() == 1 ? y.rank() - 1 : y.rank() - 2));
  }
  if (b.rank() == 1) {
    const Tensor column = reshape(At(b, where), Shape{b.numel(), 1});
    const Tensor y = matmul(at_a, At(column, where), options);
    return reshape(At(y, where), y.shape().without(y.rank() - 1));
  }
  if (a.dtype() != b.dtype())
    fail(ErrorKind::dtype, "[matmul] both sides must have one dtype; got ", name_of(a.dtype()), " and ",
         name_of(b.dtype()), call_site(where));
  const Sizes sa = sizes_of(a.shape(), options.transpose_a), sb = sizes_of(b.shape(), options.transpose_b);
  if (sa.cols != sb.rows)
    fail(ErrorKind::shape, "[matmul] inner sizes differ: ", sa.cols, " and ", sb.rows, "; got ", a.shape(),
         options.transpose_a ? " (transposed)" : "", " and ", b.shape(), options.transpose_b ? " (transposed)" : "",
         call_site(where));
  const Shape lead_a = leading(a.shape()), lead_b = leading(b.shape());
  Shape lead;
  if (!broadcast_shapes(lead_a, lead_b, lead))
    fail(ErrorKind::shape, "[matmul] leading axes do not broadcast; got ", a.shape(), " and ", b.shape(),
         call_site(where));
  // Many rows times one matrix is one product of more rows.
  if (b.rank() == 2 && a.rank() > 2 && !options.transpose_a) {
    const Tensor flat = reshape(At(a, where), Shape{lead_a.numel() * sa.rows, sa.cols});
    return reshape(At(matmul(At(flat, where), at_b, options), where), joined(lead, sa.rows, sb.cols));
  }
  const Tensor wide_a = lead_a == lead ? a : expand(At(a, where), joined(lead, a.shape().back(1), a.shape().back(0)));
  const Tensor wide_b = lead_b == lead ? b : expand(At(b, where), joined(lead, b.shape().back(1), b.shape().back(0)));
  return record(kMatmul, {&wide_a, &wide_b}, a.dtype(), joined(lead, sa.rows, sb.cols),
                MatmulAttrs{options.transpose_a, options.transpose_b}, where);
}

Tensor mv(At matrix, At vector) {
  if (matrix.tensor.rank() != 2 || vector.tensor.rank() != 1)
    fail(ErrorKind::shape, "[mv] needs a matrix and a vector; got ", matrix.tensor.shape(), " and ",
         vector.tensor.shape(), call_site(matrix.where));
  return matmul(matrix, vector);
}

Tensor bmm(At a, At b) {
  if (a.tensor.rank() != 3 || b.tensor.rank() != 3 || a.tensor.shape()[0] != b.tensor.shape()[0])
    fail(ErrorKind::shape, "[bmm] needs [B, M, K] and [B, K, N]; got ", a.tensor.shape(), " and ", b.tensor.shape(),
         call_site(a.where));
  return matmul(a, b);
}

Tensor addmm(At x, At a, At b, double beta, double alpha) {
  if (a.tensor.rank() != 2 || b.tensor.rank() != 2)
    fail(ErrorKind::shape, "[addmm] needs two matrices; got ", a.tensor.shape(), " and ", b.tensor.shape(),
         call_site(a.where));
  const Tensor product = matmul(a, b);
  Shape joint;
  if (!broadcast_shapes(x.tensor.shape(), product.shape(), joint) || !(joint == product.shape()))
    fail(ErrorKind::shape, "[addmm] the first array must broadcast to ", product.shape(), "; got ", x.tensor.shape(),
         call_site(x.where));
  const auto times = [&](const Tensor& t, double v) { return v == 1 ? t : mul(At(t, x.where), v); };
  return beta == 0 ? times(product, alpha) : add(At(times(x.tensor, beta), x.where), times(product, alpha));
}

Tensor linear(At x, const Tensor& weight, const Tensor& bias) {
  const Tensor& t = x.tensor;
  if (weight.rank() != 2 || t.rank() < 1 || t.shape().back() != weight.shape()[1])
    fail(ErrorKind::shape, "[linear] the last axis of the input must equal the weight's [out, in] second; got input ",
         t.shape(), " and weight ", weight.shape(), call_site(x.where));
  if (bias.defined() && !(bias.shape() == Shape{weight.shape()[0]}))
    fail(ErrorKind::shape, "[linear] the bias must have the weight's first size; got bias ", bias.shape(),
         " and weight ", weight.shape(), call_site(x.where));
  if (t.rank() == 1) {
    const Tensor row = linear(At(reshape(x, Shape{1, t.numel()}), x.where), weight, bias);
    return reshape(At(row, x.where), Shape{weight.shape()[0]});
  }
  const Tensor product = matmul(x, At(weight, x.where), {.transpose_b = true});
  return bias.defined() ? add(At(product, x.where), bias) : product;
}

Tensor bilinear(At at1, At at2, const Tensor& weight, const Tensor& bias) {
  const Tensor &x1 = at1.tensor, &x2 = at2.tensor;
  const bool fits = x1.rank() > 0 && x2.rank() == x1.rank() && weight.rank() == 3 &&
                    x1.shape().without(x1.rank() - 1) == x2.shape().without(x2.rank() - 1) &&
                    x1.shape().back() == weight.shape()[1] && x2.shape().back() == weight.shape()[2];
  if (!fits)
    fail(ErrorKind::shape, "[bilinear] needs [..., in1], [..., in2] and a weight [out, in1, in2]; got ", x1.shape(),
         ", ", x2.shape(), " and ", weight.shape(), call_site(at1.where));
  if (bias.defined() && !(bias.shape() == Shape{weight.shape()[0]} && bias.dtype() == weight.dtype()))
    fail(ErrorKind::shape, "[bilinear] the bias must have the weight's first size and dtype; got bias ", bias.shape(),
         " and weight ", weight.shape(), call_site(at1.where));
  const int64_t out = weight.shape()[0], in1 = weight.shape()[1], in2 = weight.shape()[2];
  const int64_t rows = x1.shape().without(x1.rank() - 1).numel();
  // One product gives x1 W_k for all k; each is multiplied with x2 and summed.
  const Tensor flat = reshape(at1, Shape{rows, in1});
  const Tensor by_out = matmul(flat, reshape(permute(weight, std::array<int64_t, 3>{1, 0, 2}), Shape{in1, out * in2}));
  const Tensor products = reshape(by_out, Shape{rows, out, in2}) * reshape(at2, Shape{rows, 1, in2});
  const Tensor y = reshape(sum(products, {{-1}}), x1.shape().with(x1.rank() - 1, out));
  return bias.defined() ? y + bias : y;
}

const OpDef kMatmul(OpFacts{.name = "matmul",
                            .kind = OpKind::producer,
                            .derivative = matmul_derivative,
                            .autocast = Autocast::narrow,
                            .flops = matmul_flops});

}  // namespace outrace
