#include "outrace/ops/einsum.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "outrace/graph/scope.h"
#include "outrace/ops/diagonal.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/matmul.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/reduce.h"

namespace outrace {
namespace {

// An axis: a letter's code, or, of those under "...", 256 + its distance from the last of them.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 256;

bool has(const Labels& labels, Label l) { return std::find(labels.begin(), labels.end(), l) != labels.end(); }

// An operand on its way: no label twice.
struct Term {
  Tensor value;
  Labels labels;
};

struct Equation {
  std::vector<Labels> inputs;  // "..." is kEllipsis
  Labels output;
  bool explicit_output = false;
};

class Parser {
 public:
  Parser(std::string_view text, std::source_location where) : text_(text), where_(where) {}

  Equation parse() {
    Equation e;
    e.inputs.emplace_back();
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      Labels& now = e.explicit_output ? e.output : e.inputs.back();
      if (c == ' ') continue;
      if (std::isalpha(static_cast<unsigned char>(c))) {
        if (e.explicit_output && has(now, c)) refuse(cat("the result names '", c, "' twice"));
        if (e.explicit_output && !named(e, c)) refuse(cat("the result names '", c, "', which no operand has"));
        now.push_back(c);
      } else if (text_.substr(at_, 3) == "...") {
        if (has(now, kEllipsis)) refuse("a second '...'");
        now.push_back(kEllipsis);
        at_ += 2;
      } else if (c == ',' && !e.explicit_output) {
        e.inputs.emplace_back();
      } else if (text_.substr(at_, 2) == "->" && !e.explicit_output) {
        e.explicit_output = true;
        ++at_;
      } else {
        refuse(cat("unexpected '", c, "'"));
      }
    }
    return e;
  }

 private:
  static bool named(const Equation& e, Label l) {
    return std::any_of(e.inputs.begin(), e.inputs.end(), [&](const Labels& in) { return has(in, l); });
  }
  [[noreturn]] void refuse(const std::string& what) const {
    fail(ErrorKind::value, "[einsum] ", what, " at position ", at_, " of \"", text_, "\"", call_site(where_));
  }

  std::string_view text_;
  std::source_location where_;
  size_t at_ = 0;
};

// "..." written out for `count` axes.
Labels spelled_out(const Labels& labels, int count) {
  Labels out;
  for (Label l : labels) {
    if (l != kEllipsis) out.push_back(l);
    for (int i = count; l == kEllipsis && i-- > 0;) out.push_back(kEllipsis + i);
  }
  return out;
}

// Letters named once, in alphabetical order, behind "...".
Labels implied_output(const std::vector<Labels>& inputs) {
  std::map<Label, int> uses;
  for (const Labels& in : inputs)
    for (Label l : in) ++uses[l];
  Labels out;
  for (const auto& [label, count] : uses)
    if (label >= kEllipsis) out.insert(out.begin(), label);
  for (const auto& [label, count] : uses)
    if (label < kEllipsis && count == 1) out.push_back(label);
  return out;
}

std::string shown(Label l) { return l >= kEllipsis ? "an axis under '...'" : cat("'", static_cast<char>(l), "'"); }

// Axes moved to the order of `labels`, which names all of them.
Tensor ordered(const Term& t, const Labels& labels, std::source_location where) {
  if (t.labels == labels) return t.value;
  std::vector<int64_t> axes;
  for (Label l : labels) axes.push_back(std::find(t.labels.begin(), t.labels.end(), l) - t.labels.begin());
  return permute(At(t.value, where), axes);
}

// A letter that an operand names twice: its diagonal.
void take_diagonals(Term& t, std::source_location where) {
  for (size_t i = 0; i < t.labels.size(); ++i)
    for (size_t j = i + 1; j < t.labels.size(); ++j) {
      if (t.labels[i] != t.labels[j]) continue;
      const Label l = t.labels[i];
      t.value = diagonal(At(t.value, where), 0, static_cast<int64_t>(i), static_cast<int64_t>(j));
      t.labels.erase(t.labels.begin() + static_cast<int64_t>(j));
      t.labels.erase(t.labels.begin() + static_cast<int64_t>(i));
      t.labels.push_back(l);
      return take_diagonals(t, where);
    }
}

// Sums over what nobody else needs.
void sum_over_rest(Term& t, const Labels& keep, std::source_location where) {
  ReduceOptions over;
  Labels left;
  for (size_t i = 0; i < t.labels.size(); ++i) {
    if (has(keep, t.labels[i]))
      left.push_back(t.labels[i]);
    else
      over.axes.push_back(static_cast<int64_t>(i));
  }
  if (over.axes.empty()) return;
  const DType type = t.value.dtype();
  t.value = cast(At(sum(At(t.value, where), over), where), type);
  t.labels = std::move(left);
}

struct Roles {
  Labels batch, summed, left, right;  // in both and kept, in both and not kept, in one
};

Roles roles_of(const Term& a, const Term& b, const Labels& keep) {
  Roles r;
  for (Label l : a.labels) (!has(b.labels, l) ? r.left : has(keep, l) ? r.batch : r.summed).push_back(l);
  for (Label l : b.labels)
    if (!has(a.labels, l)) r.right.push_back(l);
  return r;
}

Labels joined(std::initializer_list<const Labels*> lists) {
  Labels out;
  for (const Labels* l : lists) out.insert(out.end(), l->begin(), l->end());
  return out;
}

// Sizes of labels within a term.
std::vector<int64_t> sizes(const Term& t, const Labels& labels) {
  std::vector<int64_t> out;
  for (Label l : labels)
    out.push_back(t.value.shape()[static_cast<int>(std::find(t.labels.begin(), t.labels.end(), l) - t.labels.begin())]);
  return out;
}

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

double cost(const Term& a, const Term& b, const Labels& keep) {
  const Roles r = roles_of(a, b, keep);
  const auto count = [](const Term& t, const Labels& l) { return static_cast<double>(product(sizes(t, l))); };
  return count(a, r.batch) * count(a, r.summed) * count(a, r.left) * count(b, r.right);
}

// The product, with the labels of `keep` that either has.
Term contract(Term a, Term b, const Labels& keep, std::source_location where) {
  sum_over_rest(a, joined({&keep, &b.labels}), where);
  sum_over_rest(b, joined({&keep, &a.labels}), where);
  const Roles r = roles_of(a, b, keep);
  const std::vector<int64_t> batch = sizes(a, r.batch), left = sizes(a, r.left), right = sizes(b, r.right);
  const int64_t entries = product(batch), rows = product(left), columns = product(right);
  Term out;
  out.labels = joined({&r.batch, &r.left, &r.right});
  const bool many = out.labels.size() > static_cast<size_t>(kMaxRank);
  if (many) fail(ErrorKind::shape, "[einsum] a product of more than ", kMaxRank, " axes", call_site(where));
  std::vector<int64_t> dims = batch;
  dims.insert(dims.end(), left.begin(), left.end());
  dims.insert(dims.end(), right.begin(), right.end());
  const Shape shape{std::span<const int64_t>(dims)};

  const int64_t inner = product(sizes(a, r.summed));
  const Tensor x = ordered(a, joined({&r.batch, &r.left, &r.summed}), where);
  const Tensor z = ordered(b, joined({&r.batch, &r.summed, &r.right}), where);
  if (r.summed.empty()) {
    const Tensor y = mul(At(reshape(At(x, where), Shape{entries, rows, 1}), where),
                         reshape(At(z, where), Shape{entries, 1, columns}));
    out.value = reshape(At(y, where), shape);
  } else if (rows == 1 && columns == 1) {
    const Tensor y =
        mul(At(reshape(At(x, where), Shape{entries, inner}), where), reshape(At(z, where), Shape{entries, inner}));
    const Tensor total = sum(At(y, where), {{1}});
    out.value = reshape(At(cast(At(total, where), y.dtype()), where), shape);
  } else {
    const Tensor y = matmul(At(reshape(At(x, where), Shape{entries, rows, inner}), where),
                            reshape(At(z, where), Shape{entries, inner, columns}));
    out.value = reshape(At(y, where), shape);
  }
  return out;
}

// Products pair by pair, the cheapest first; of equal costs the first pair.
Term contract_all(std::vector<Term> terms, const Labels& output, std::source_location where) {
  while (terms.size() > 1) {
    size_t best_a = 0, best_b = 1;
    Labels best_keep;
    double least = -1;
    for (size_t i = 0; i < terms.size(); ++i)
      for (size_t j = i + 1; j < terms.size(); ++j) {
        Labels keep = output;
        for (size_t k = 0; k < terms.size(); ++k)
          if (k != i && k != j) keep.insert(keep.end(), terms[k].labels.begin(), terms[k].labels.end());
        const double now = cost(terms[i], terms[j], keep);
        if (least >= 0 && now >= least) continue;
        least = now;
        best_a = i;
        best_b = j;
        best_keep = std::move(keep);
      }
    Term both = contract(std::move(terms[best_a]), std::move(terms[best_b]), best_keep, where);
    terms.erase(terms.begin() + static_cast<int64_t>(best_b));
    terms[best_a] = std::move(both);
  }
  sum_over_rest(terms[0], output, where);
  return std::move(terms[0]);
}

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, std::source_location where) {
  Equation e = Parser(equation, where).parse();
  if (e.inputs.size() != operands.size() || operands.empty())
    fail(ErrorKind::value, "[einsum] \"", equation, "\" names ", e.inputs.size(), " operands; got ", operands.size(),
         call_site(where));
  std::vector<Term> terms;
  std::map<Label, int64_t> size_of_label;
  int most = 0;  // axes under "..."
  for (size_t k = 0; k < operands.size(); ++k) {
    const Tensor& t = operands[k];
    const bool open = has(e.inputs[k], kEllipsis);
    const int covered = t.rank() - static_cast<int>(e.inputs[k].size()) + (open ? 1 : 0);
    if (open ? covered < 0 : covered != 0)
      fail(ErrorKind::shape, "[einsum] operand ", k, " of \"", equation, "\" has ", e.inputs[k].size() - (open ? 1 : 0),
           open ? " named axes or more; got " : " axes; got ", t.shape(), call_site(where));
    e.inputs[k] = spelled_out(e.inputs[k], covered);
    most = std::max(most, open ? covered : 0);
    terms.push_back({t, e.inputs[k]});
    for (int i = 0; i < t.rank(); ++i) {
      int64_t& size = size_of_label.emplace(terms[k].labels[i], 1).first->second;
      const int64_t now = t.shape()[i];
      if (size != 1 && now != 1 && size != now)
        fail(ErrorKind::shape, "[einsum] ", shown(terms[k].labels[i]), " of \"", equation, "\" is ", size, " and ", now,
             "; operand ", k, " is ", t.shape(), call_site(where));
      if (size == 1) size = now;
    }
  }
  const Labels output = e.explicit_output ? spelled_out(e.output, most) : implied_output(e.inputs);
  for (Term& t : terms) {
    // An axis of size 1 that others have larger is repeated: products do so without it.
    for (size_t i = t.labels.size(); i-- > 0;) {
      if (t.value.shape()[static_cast<int>(i)] != 1 || size_of_label[t.labels[i]] == 1) continue;
      t.value = squeeze(At(t.value, where), static_cast<int64_t>(i));
      t.labels.erase(t.labels.begin() + static_cast<int64_t>(i));
    }
    take_diagonals(t, where);
  }
  const Term total = contract_all(std::move(terms), output, where);
  return ordered(total, output, where);
}

Tensor tensordot(At a, const Tensor& b, const std::vector<int64_t>& axes_a, const std::vector<int64_t>& axes_b) {
  const std::source_location where = a.where;
  if (axes_a.size() != axes_b.size())
    fail(ErrorKind::value, "[tensordot] needs as many axes of each array; got ", axes_a.size(), " and ", axes_b.size(),
         call_site(where));
  Term x{a.tensor, {}}, z{b, {}};
  for (int i = 0; i < x.value.rank(); ++i) x.labels.push_back(i);
  for (int i = 0; i < b.rank(); ++i) z.labels.push_back(kMaxRank + i);
  Labels output = joined({&x.labels, &z.labels});
  for (size_t i = 0; i < axes_a.size(); ++i) {
    const int p = normalize_axis(axes_a[i], x.value.rank(), "tensordot");
    const int q = normalize_axis(axes_b[i], b.rank(), "tensordot");
    if (z.labels[q] != kMaxRank + q || std::count(z.labels.begin(), z.labels.end(), p) > 0)
      fail(ErrorKind::value, "[tensordot] names an axis twice; got axes ", p, " and ", q, call_site(where));
    if (x.value.shape()[p] != b.shape()[q])
      fail(ErrorKind::shape, "[tensordot] axis ", p, " of ", x.value.shape(), " and axis ", q, " of ", b.shape(),
           " must have one size", call_site(where));
    z.labels[q] = p;
    std::erase(output, p);
    std::erase(output, kMaxRank + q);
  }
  return ordered(contract(x, z, output, where), output, where);
}

Tensor tensordot(At a, const Tensor& b, int64_t axes) {
  if (axes < 0 || axes > a.tensor.rank() || axes > b.rank())
    fail(ErrorKind::value, "[tensordot] ", axes, " axes are more than both arrays have; got ", a.tensor.shape(),
         " and ", b.shape(), call_site(a.where));
  std::vector<int64_t> last, first;
  for (int64_t i = 0; i < axes; ++i) {
    last.push_back(a.tensor.rank() - axes + i);
    first.push_back(i);
  }
  return tensordot(a, b, last, first);
}

Tensor outer(At x, const Tensor& z) {
  if (x.tensor.rank() != 1 || z.rank() != 1)
    fail(ErrorKind::shape, "[outer] needs two vectors; got ", x.tensor.shape(), " and ", z.shape(), call_site(x.where));
  return mul(At(reshape(x, Shape{x.tensor.numel(), 1}), x.where), z);
}

Tensor dot(At x, const Tensor& z) {
  if (x.tensor.rank() != 1 || !(z.shape() == x.tensor.shape()))
    fail(ErrorKind::shape, "[dot] needs two vectors of one length; got ", x.tensor.shape(), " and ", z.shape(),
         call_site(x.where));
  return vecdot(x, z);
}

Tensor vecdot(At x, const Tensor& z, int64_t axis) {
  const Tensor y = mul(x, z);
  return cast(At(sum(At(y, x.where), {{normalize_axis(axis, y.rank(), "vecdot")}}), x.where), y.dtype());
}

Tensor kron(At x, const Tensor& z) {
  const int rank = std::max(x.tensor.rank(), z.rank());
  if (2 * rank > kMaxRank)
    fail(ErrorKind::shape, "[kron] takes at most ", kMaxRank / 2, " axes; got ", x.tensor.shape(), " and ", z.shape(),
         call_site(x.where));
  std::vector<int64_t> left, right, dims;
  for (int i = rank - 1; i >= 0; --i) {
    const int64_t a = i < x.tensor.rank() ? x.tensor.shape().back(i) : 1, b = i < z.rank() ? z.shape().back(i) : 1;
    left.insert(left.end(), {a, 1});
    right.insert(right.end(), {1, b});
    dims.push_back(a * b);
  }
  const auto shaped = [&](const Tensor& t, const std::vector<int64_t>& d) {
    return reshape(At(t, x.where), Shape(std::span<const int64_t>(d)));
  };
  return shaped(mul(At(shaped(x.tensor, left), x.where), shaped(z, right)), dims);
}

}  // namespace outrace
