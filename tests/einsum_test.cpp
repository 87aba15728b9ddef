// Contractions against loops over every letter, and what the parser refuses.
#include <map>

#include "index_support.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

// Letters only; the result's axes as named behind "->".
Values by_loops(const std::string& equation, const std::vector<Tensor>& operands) {
  const size_t arrow = equation.find("->");
  const std::string result = equation.substr(arrow + 2);
  std::vector<std::string> inputs{""};
  for (char c : equation.substr(0, arrow)) {
    if (c == ',')
      inputs.emplace_back();
    else
      inputs.back() += c;
  }
  std::map<char, int64_t> sizes;
  std::vector<Values> values;
  for (size_t k = 0; k < inputs.size(); ++k) {
    values.push_back(operands[k].to_vector<double>());
    for (size_t i = 0; i < inputs[k].size(); ++i)
      sizes[inputs[k][i]] = std::max(sizes[inputs[k][i]], operands[k].shape()[static_cast<int>(i)]);
  }
  std::vector<int64_t> dims, all;
  std::string letters = result;
  for (const auto& [letter, size] : sizes)
    if (result.find(letter) == std::string::npos) letters += letter;
  for (char c : result) dims.push_back(sizes[c]);
  for (char c : letters) all.push_back(sizes[c]);
  const Shape shape{std::span<const int64_t>(dims)}, space{std::span<const int64_t>(all)};
  Values out(static_cast<size_t>(shape.numel()), 0);
  for (int64_t i = 0; i < space.numel(); ++i) {
    const std::vector<int64_t> p = place_of(space, i);
    double product = 1;
    for (size_t k = 0; k < inputs.size(); ++k) {
      std::vector<int64_t> at;
      for (size_t a = 0; a < inputs[k].size(); ++a) {
        const int64_t v = p[letters.find(inputs[k][a])];
        at.push_back(operands[k].shape()[static_cast<int>(a)] == 1 ? 0 : v);
      }
      product *= values[k][at_place(operands[k].shape(), at)];
    }
    out[at_place(shape, {p.begin(), p.begin() + static_cast<int64_t>(result.size())})] += product;
  }
  return out;
}

TEST(Einsum, AgainstLoops) {
  struct Case {
    const char* equation;
    std::vector<Shape> shapes;
    Shape result;
  };
  const std::vector<Case> cases = {{"ij,jk->ik", {{3, 4}, {4, 5}}, {3, 5}},
                                   {"ij,jk->ki", {{3, 4}, {4, 5}}, {5, 3}},
                                   {"ij,kj->ik", {{3, 4}, {5, 4}}, {3, 5}},
                                   {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}, {2, 3, 5}},
                                   {"ibj,kjb->kbi", {{3, 2, 4}, {5, 4, 2}}, {5, 2, 3}},
                                   {"ij->", {{3, 4}}, {}},
                                   {"ij->j", {{3, 4}}, {4}},
                                   {"ijk->kji", {{2, 3, 4}}, {4, 3, 2}},
                                   {"ii->i", {{3, 3}}, {3}},
                                   {"ii->", {{3, 3}}, {}},
                                   {"iji->ji", {{3, 2, 3}}, {2, 3}},
                                   {"iii->i", {{3, 3, 3}}, {3}},
                                   {"ijij->ij", {{2, 3, 2, 3}}, {2, 3}},
                                   {"i,i->", {{5}, {5}}, {}},
                                   {"i,j->ij", {{2}, {3}}, {2, 3}},
                                   {"i,i->i", {{5}, {5}}, {5}},
                                   {"ij,ij->i", {{3, 4}, {3, 4}}, {3}},
                                   {"ij,k->jk", {{3, 4}, {2}}, {4, 2}},
                                   {",i->i", {{}, {3}}, {3}},
                                   {"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}}, {2, 5}},
                                   {"a,ab,bc,c->", {{2}, {2, 3}, {3, 4}, {4}}, {}},
                                   {"bqhd,bkhd->bhqk", {{2, 3, 2, 4}, {2, 5, 2, 4}}, {2, 2, 3, 5}},
                                   {"ij,jk->ik", {{3, 0}, {0, 2}}, {3, 2}},
                                   {"ij,jk->ik", {{0, 3}, {3, 2}}, {0, 2}},
                                   {"ij,jk->ik", {{3, 1}, {4, 5}}, {3, 5}},
                                   {"ij,ij->ij", {{1, 4}, {3, 1}}, {3, 4}},
                                   {"ij,ij->", {{1, 4}, {3, 1}}, {}},
                                   {"abc,cd,bd->a", {{2, 3, 4}, {4, 2}, {3, 2}}, {2}}};
  for (DType t : {DType::f64, DType::f32, DType::i64, DType::i32})
    for (const Case& c : cases) {
      std::vector<Tensor> operands;
      for (const Shape& s : c.shapes) operands.push_back(make(whole_numbers(s, t, s.numel()), s, t));
      const Tensor y = einsum(c.equation, operands);
      EXPECT_EQ(y.dtype(), t);
      expect_values(y, c.result, by_loops(c.equation, operands), cat(c.equation, " ", name_of(t)));
      // Operands that are views of something else.
      std::vector<Tensor> views;
      for (const Tensor& o : operands) views.push_back(o.rank() < 2 ? o : o.transpose(0, -1).eval().transpose(0, -1));
      expect_values(einsum(c.equation, views), c.result, by_loops(c.equation, operands), c.equation);
    }
}

TEST(Einsum, ImpliedResultsBlanksAndDots) {
  const Tensor a = make(whole_numbers({2, 3, 4}, DType::f64), {2, 3, 4}, DType::f64);
  const Tensor b = make(whole_numbers({3, 4, 2}, DType::f64, 2), {3, 4, 2}, DType::f64);
  const auto same = [&](std::string_view x, const std::vector<Tensor>& xs, std::string_view z,
                        const std::vector<Tensor>& zs) {
    const Tensor e = einsum(z, zs);
    expect_values(einsum(x, xs), e.shape(), e.to_vector<double>(), std::string(x));
  };
  same("cba", {a}, "cba->abc", {a});
  same("ij, jk", {a[0], b[0]}, "ij,jk->ik", {a[0], b[0]});
  same("ii", {a[0].slice(1, 0, 3)}, "ii->", {a[0].slice(1, 0, 3)});
  same(" i j -> j i ", {a[0]}, "ij->ji", {a[0]});
  same("...ij,...jk", {a, b[0]}, "bij,jk->bik", {a, b[0]});
  same("...j->...", {a}, "abj->ab", {a});
  same("i...->...", {a}, "iab->ab", {a});
  same("...", {a}, "abc->abc", {a});
  same("...i->i", {a}, "abi->i", {a});
  same("...i,...i->...i", {a, b[0].t()[0]}, "abi,i->abi", {a, b[0].t()[0]});
  same("...i,i...->...", {a[0], a[0].t()}, "ai,ia->a", {a[0], a[0].t()});
  same("...,...->...", {a, full({1, 3, 1}, 2, {.dtype = DType::f64})}, "abc->abc", {a * 2});
}

TEST(Einsum, ErrorsShowThePlace) {
  const Tensor m = ones({2, 3});
  const auto says = [](std::string_view equation, const std::vector<Tensor>& operands, const std::string& part) {
    const std::string text = error_of([&] { einsum(equation, operands); });
    EXPECT_NE(text.find(part), std::string::npos) << text << " for " << part;
  };
  says("ij,j%->i", {m, m}, "[einsum] unexpected '%' at position 4 of \"ij,j%->i\"");
  says("ij->ik", {m}, "the result names 'k', which no operand has at position 5");
  says("ij->ii", {m}, "the result names 'i' twice at position 5");
  says("i..j", {m}, "unexpected '.' at position 1");
  says("...i...", {m}, "a second '...' at position 4");
  says("ij->i,j", {m}, "unexpected ',' at position 5");
  says("ij->i->", {m}, "unexpected '-' at position 5");
  says("ij", {m, m}, "\"ij\" names 1 operands; got 2");
  says("ijk->i", {m}, "operand 0 of \"ijk->i\" has 3 axes; got [2, 3]");
  says("...ijk->i", {m}, "has 3 named axes or more; got [2, 3]");
  says("ij,jk->ik", {m, m}, "'j' of \"ij,jk->ik\" is 3 and 2; operand 1 is [2, 3]");
  says("...,...", {m, ones({3, 2})}, "an axis under '...'");
  says("ij,jk->ik", {m, ones({3, 2}, {.dtype = DType::f64})}, "[matmul] both sides must have one dtype");
}

TEST(Einsum, ProductsByName) {
  const Tensor m = make(whole_numbers({3, 4}, DType::f64), {3, 4}, DType::f64);
  const Tensor v = make(whole_numbers({4}, DType::f64, 3), {4}, DType::f64), w = m.t()[0];
  const auto same = [](const Tensor& got, const std::string& equation, const std::vector<Tensor>& operands,
                       const Shape& shape) { expect_values(got, shape, by_loops(equation, operands), equation); };
  same(mv(m, v), "ij,j->i", {m, v}, {3});
  same(matmul(w, m), "i,ij->j", {w, m}, {4});
  same(matmul(v, v), "i,i->", {v, v}, {});
  same(dot(v, v), "i,i->", {v, v}, {});
  same(outer(v, w), "i,j->ij", {v, w}, {4, 3});
  same(vecdot(m, v), "ij,j->i", {m, v}, {3});
  same(vecdot(m, m, 0), "ij,ij->j", {m, m}, {4});
  const Tensor b = make(whole_numbers({2, 3, 4}, DType::f64), {2, 3, 4}, DType::f64);
  same(bmm(b, b.permute({0, 2, 1})), "bij,bkj->bik", {b, b}, {2, 3, 3});
  same(matmul(b, v), "bij,j->bi", {b, v}, {2, 3});
  same(matmul(w, b), "i,bij->bj", {w, b}, {2, 4});
  same(matmul(v, b, {.transpose_b = true}), "j,bij->bi", {v, b}, {2, 3});
  same(tensordot(b, m), "aij,ij->a", {b, m}, {2});
  same(tensordot(b, m, {2, 1}, {1, 0}), "aij,ij->a", {b, m}, {2});
  same(tensordot(b, v, 0), "aij,k->aijk", {b, v}, {2, 3, 4, 4});
  const Tensor x = make({1, 2}, {1, 2}, DType::f64), z = make({3, 4}, {2}, DType::f64);
  expect_values(kron(x, z), {1, 4}, {3, 4, 6, 8});
  expect_values(kron(z, x), {1, 4}, {3, 6, 4, 8});
  expect_values(addmm(x, ones({2, 3}, {.dtype = DType::f64}), ones({3, 2}, {.dtype = DType::f64}), 2, 10), {2, 2},
                {32, 34, 32, 34});
  const auto says = [](const std::function<Tensor()>& f, const std::string& part) {
    const std::string text = error_of([&] { f().eval(); });
    EXPECT_NE(text.find(part), std::string::npos) << text << " for " << part;
  };
  says([&] { return matmul(v, w); }, "[matmul] inner sizes differ: 4 and 3");
  says([&] { return matmul(full({}, 1), v); }, "[matmul] needs an axis on each side");
  says([&] { return matmul(v, m, {.transpose_a = true}); }, "two where it is transposed");
  says([&] { return mv(v, v); }, "[mv] needs a matrix and a vector");
  says([&] { return bmm(m, m); }, "[bmm] needs [B, M, K] and [B, K, N]");
  says([&] { return dot(v, w); }, "[dot] needs two vectors of one length");
  says([&] { return outer(m, v); }, "[outer] needs two vectors");
  says([&] { return tensordot(b, m, {0}, {0}); }, "[tensordot] axis 0 of [2, 3, 4] and axis 0 of [3, 4]");
  says([&] { return tensordot(b, m, {0}, {}); }, "[tensordot] needs as many axes");
  says([&] { return tensordot(b, b, {0, 0}, {0, 1}); }, "[tensordot] names an axis twice");
  says([&] { return tensordot(b, m, 3); }, "[tensordot] 3 axes are more than both arrays have");
  says([&] { return addmm(m, m, m.t()); }, "[addmm] the first array must broadcast to [3, 3]");
  says([&] { return kron(ones({1, 1, 1, 1, 1}), v); }, "[kron] takes at most 4 axes");
}

double product_flops(const Node& n) {
  double flops = 0;
  std::vector<Shape> shapes;
  for (const NodePtr& in : n.inputs) {
    flops += product_flops(*in);
    shapes.push_back(in->shape);
  }
  return n.op == &kMatmul ? flops + kMatmul.flops(shapes, n.shape, n.attrs) : flops;
}

// A chain is multiplied from its cheap end: two products of a matrix and a vector, never one of two matrices.
TEST(Einsum, CheapestPairFirst) {
  const Tensor a = ones({400, 400}), v = ones({400});
  const Tensor y = einsum("ij,jk,k->i", {a, a, v});
  EXPECT_EQ(product_flops(y.node()), 2 * 2 * 400 * 400);
  expect_values(y.slice(0, 0, 2), {2}, {160000, 160000});
}

}  // namespace
}  // namespace outrace
