// Cases of the ops that move, choose and join elements, and of einsum.
#include "op_cases.h"

namespace outrace {
namespace {

using Args = std::span<const Tensor>;

// Indices on the arguments' device.
Tensor ids(const Tensor& beside, const std::vector<int64_t>& v, const Shape& shape) {
  return Tensor::from(v, shape, beside.device());
}

void add_gather(std::vector<OpCase>& out) {
  auto add = [&](const char* op, const char* name, std::vector<Shape> in, std::function<Tensor(Args)> f, double n = 1) {
    out.push_back({op, name, std::move(in), -2, 2, std::move(f), n});
  };
  add("gather", "gather along the last axis", {{3, 4}}, [](Args a) {
    return gather(a[0], 1, ids(a[0], {3, 0, 0, 1, 2, 2}, {3, 2}));
  });
  add("gather", "gather along the first axis", {{3, 4}}, [](Args a) {
    return gather(a[0], 0, ids(a[0], {2, 0, 0, 1, 2, 2}, {2, 3}));
  });
  add("gather", "gather of a transposed view in the middle", {{4, 3, 2}}, [](Args a) {
    return gather(a[0].permute({2, 1, 0}), 1, ids(a[0], {2, 0, 1, 1, 0, 2, 2, 2}, {2, 1, 4}));
  });
  add("index_select", "index_select of rows", {{5, 3}}, [](Args a) {
    return index_select(a[0], 0, ids(a[0], {4, 0, 4, 1}, {4}));
  });
  add("index_select", "index_select in the middle", {{2, 4, 3}}, [](Args a) {
    return index_select(a[0], 1, ids(a[0], {3, 3}, {2}));
  });
  add("index_select", "index_select of columns", {{3, 5}}, [](Args a) {
    return index_select(a[0], -1, ids(a[0], {1, 4, 1}, {3}));
  });
  add("take", "take", {{3, 4}}, [](Args a) { return take(a[0], ids(a[0], {11, 0, 5, 5}, {2, 2})); });
  add("scatter", "scatter with a place written twice", {{3, 4}, {3, 3}}, [](Args a) {
    return scatter(a[0], 1, ids(a[0], {0, 1, 0, 3, 3, 3, 2, 1, 0}, {3, 3}), a[1]);
  });
  add("scatter", "scatter of a corner of the source", {{4, 4}, {3, 3}}, [](Args a) {
    return scatter(a[0], 0, ids(a[0], {0, 3, 2, 2}, {2, 2}), a[1]);
  });
  add("scatter", "scatter of a number", {{3, 4}}, [](Args a) {
    return scatter(a[0], 1, ids(a[0], {1, 3, 2}, {3, 1}), 1.5) * 2;
  });
  add(
      "scatter_add", "scatter_add", {{3, 4}, {3, 3}},
      [](Args a) {
        return scatter_add(a[0], 1, ids(a[0], {0, 1, 0, 3, 3, 3, 2, 1, 0}, {3, 3}), a[1]);
      },
      8);
  add(
      "scatter_add", "scatter_add along the first axis", {{3, 4}, {2, 4}},
      [](Args a) {
        return scatter_add(a[0], 0, ids(a[0], {2, 1, 0, 0, 2, 2, 0, 1}, {2, 4}), a[1]);
      },
      8);
  add(
      "index_add", "index_add of rows", {{3, 4}, {5, 4}},
      [](Args a) {
        return index_add(a[0], 0, ids(a[0], {2, 0, 2, 2, 0}, {5}), a[1]);
      },
      8);
  add(
      "index_add", "index_add of columns", {{2, 3}, {2, 4}},
      [](Args a) {
        return index_add(a[0], 1, ids(a[0], {2, 0, 2, 2}, {4}), a[1]);
      },
      8);
  add("scatter", "index_copy", {{4, 3}, {2, 3}}, [](Args a) {
    return index_copy(a[0], 0, ids(a[0], {3, 1}, {2}), a[1]);
  });
  add("embedding", "embedding", {{4, 3}}, [](Args a) { return embedding(a[0], ids(a[0], {3, 0, 3, 1}, {2, 2})); });
  // The padding row does get a value, so only rows beside it can be checked by differences.
  add("embedding", "embedding beside the padding row", {{4, 3}}, [](Args a) {
    return embedding(a[0], ids(a[0], {3, 0, 3}, {3}), 2);
  });
  for (BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max})
    add(
        "embedding",
        mode == BagMode::max    ? "embedding_bag max"
        : mode == BagMode::mean ? "embedding_bag mean"
                                : "bag sum",
        {{5, 2}},
        [mode](Args a) {
          return embedding_bag(a[0], ids(a[0], {0, 1, 2, 4, 4}, {5}), ids(a[0], {0, 2, 2}, {3}), mode);
        },
        16);
  add("select", "masked_fill", {{3, 4}}, [](Args a) {
    return masked_fill(a[0], ids(a[0], {1, 0, 0, 1}, {4}).to(DType::boolean), -0.5);
  });
  add("index_select", "masked_select", {{3, 4}}, [](Args a) {
    return masked_select(a[0], ids(a[0], {1, 0, 1}, {3, 1}).to(DType::boolean));
  });
}

void add_joined(std::vector<OpCase>& out) {
  auto add = [&](const char* op, const char* name, std::vector<Shape> in, std::function<Tensor(Args)> f) {
    out.push_back({op, name, std::move(in), -2, 2, std::move(f)});
  };
  add("cat", "cat of rows", {{2, 3}, {4, 3}, {0, 3}}, [](Args a) { return cat({a[0], a[1], a[2]}); });
  add("cat", "cat of columns, one a transposed view", {{2, 3}, {4, 2}}, [](Args a) {
    return cat({a[0], a[1].t()}, 1);
  });
  add("cat", "cat of ten", {{2, 3}}, [](Args a) {
    std::vector<Tensor> parts;
    for (int i = 0; i < 10; ++i) parts.push_back(a[0] * (i + 1));
    return cat(parts, 1) * 0.1;
  });
  add("cat", "stack", {{2, 3}, {2, 3}}, [](Args a) { return stack({a[0], a[1], a[0]}, 1); });
  add("cat", "roll", {{3, 4}}, [](Args a) { return roll(a[0], {1, -6}, {0, 1}); });
  add("cat", "slice_assign", {{5, 3}, {3}}, [](Args a) { return slice_assign(a[0], 0, 1, 4, a[1]); });
  add("cat", "select_assign", {{5, 3}, {5}}, [](Args a) { return select_assign(a[0], 1, -1, a[1]); });
  add("slice", "split and chunk", {{5, 3}}, [](Args a) {
    return split(a[0], 2)[1] * chunk(a[0], 2)[1].slice(0, 0, 2) * split(a[0], {1, 4})[1][3];
  });
  add("slice", "flip", {{3, 4}}, [](Args a) { return flip(a[0]) + flip(a[0], {1}).slice(1, 1, 2); });
  add("slice", "flip, then a product", {{3, 4}, {4, 2}}, [](Args a) { return matmul(flip(a[0], {1}), a[1]) * 0.1; });
  add("expand", "repeat and tile", {{2, 3}}, [](Args a) { return tile(repeat(a[0], {2, 1, 3}), {2, 1}); });
  add("expand", "repeat_interleave", {{2, 3}}, [](Args a) { return repeat_interleave(a[0], 3, 1); });
  add("index_select", "repeat_interleave, each its own number", {{2, 3}}, [](Args a) {
    return repeat_interleave(a[0], {2, 0, 3}, 1);
  });
  add("permute", "movedim", {{2, 3, 4}}, [](Args a) { return movedim(a[0], 0, -1).reshape({12, 2}); });
  add("unfold", "unfold with overlaps", {{3, 7}}, [](Args a) { return unfold(a[0], 1, 3, 2); });
  add("unfold", "unfold of the first axis", {{7, 2}}, [](Args a) { return unfold(a[0], 0, 2, 3); });
  add("unfold", "unfold of an unfolded transpose", {{4, 5}},
      [](Args a) { return unfold(unfold(a[0].t(), 0, 3), 1, 2, 2) * 0.5; });
  add("fold", "fold", {{2, 3, 4}}, [](Args a) { return fold(a[0] * 0.25, {2, 9}, 1, 2); });
  add("diagonal", "diagonal", {{3, 4}}, [](Args a) { return diagonal(a[0], 1); });
  add("diagonal", "diagonal of two outer axes", {{3, 2, 4}}, [](Args a) { return diagonal(a[0], -1, 2, 0); });
  add("diagonal", "trace", {{3, 3}}, [](Args a) { return trace(a[0]) * 0.1; });
  add("pad", "diag_embed", {{2, 3}}, [](Args a) { return diag_embed(a[0], -1, 0, 2); });
  add("select", "tril and triu", {{2, 3, 4}}, [](Args a) { return tril(a[0], 1) + triu(a[0], 2); });
  add("pad", "pad with a number", {{2, 3}}, [](Args a) { return pad_constant(a[0], {1, 2, -1, 1}, 0.5); });
  add("cat", "pad by reflection", {{2, 3, 4}}, [](Args a) { return pad(a[0], {3, 2, 1, 2}, PadMode::reflect); });
  add("cat", "pad by the edge", {{2, 3}}, [](Args a) { return pad(a[0], {3, -1, 1, 2}, PadMode::replicate); });
  add("cat", "pad by the other end", {{2, 3}}, [](Args a) { return pad(a[0], {3, 2}, PadMode::circular); });
}

void add_einsum(std::vector<OpCase>& out) {
  auto add = [&](const std::string& equation, std::vector<Shape> in) {
    out.push_back({"matmul", "einsum " + equation, std::move(in), -1, 1,
                   [equation](Args a) {
                     return einsum(equation, {a.begin(), a.end()});
                   },
                   64});
  };
  add("ij,jk->ik", {{3, 4}, {4, 2}});
  add("ij,kj", {{3, 4}, {2, 4}});
  add("bij,bjk->bki", {{2, 3, 4}, {2, 4, 2}});
  add("ii->i", {{3, 3}});
  add("ii", {{3, 3}});
  add("ij->ji", {{3, 4}});
  add("ij->", {{3, 4}});
  add("i,j->ij", {{3}, {4}});
  add("bi,bi->b", {{3, 4}, {3, 4}});
  add("...ij,...jk->...ik", {{2, 1, 2, 3}, {3, 3, 2}});
  add("ij,jk,kl,l->i", {{2, 3}, {3, 4}, {4, 2}, {2}});
  add("bhqd,bhkd->bhqk", {{1, 2, 3, 4}, {1, 2, 2, 4}});
  add("iij,jk->ik", {{2, 2, 3}, {3, 2}});
  for (auto [a, b] :
       {std::pair<Shape, Shape>{{4}, {4, 3}}, {{3, 4}, {4}}, {{4}, {4}}, {{2, 3, 4}, {4}}, {{4}, {2, 4, 3}}})
    out.push_back({"matmul",
                   cat("matmul with a vector ", a, " ", b),
                   {a, b},
                   -1,
                   1,
                   [](Args x) { return matmul(x[0], x[1]); },
                   32});
  out.push_back({"matmul",
                 "tensordot",
                 {{2, 3, 4}, {4, 2, 3}},
                 -1,
                 1,
                 [](Args a) {
                   return tensordot(a[0], a[1], {2, 0}, {0, 1});
                 },
                 64});
  out.push_back(
      {"matmul", "addmm", {{4}, {3, 2}, {2, 4}}, -1, 1, [](Args a) { return addmm(a[0], a[1], a[2], 0.5, 2); }, 64});
  out.push_back({"mul", "kron and outer", {{2}, {3}}, -1, 1, [](Args a) { return kron(outer(a[0], a[1]), a[1]); }, 8});
}

}  // namespace

void add_index_cases(std::vector<OpCase>& out) {
  add_gather(out);
  add_joined(out);
  add_einsum(out);
}

}  // namespace outrace
