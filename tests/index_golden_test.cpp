// The ops that choose, join, move and contract elements against PyTorch: values and gradients in f64.
#include <map>

#include "golden.h"
#include "index_support.h"
#include "outrace/graph/autograd.h"

namespace outrace {
namespace {

// Inputs by name; "index", "offsets" and "mask" are integers.
using Inputs = std::map<std::string, Tensor>;
using Function = std::function<Tensor(Inputs&)>;

void expect_near(const Tensor& got, const GoldenArray& expected, const std::string& what) {
  const Values v = got.to_vector<double>();
  ASSERT_EQ(got.shape(), Shape(std::span<const int64_t>(expected.shape))) << what;
  for (size_t i = 0; i < v.size(); ++i) ASSERT_NEAR(v[i], expected.values[i], 1e-13) << what << ", element " << i;
}

void check(const std::string& group, const std::map<std::string, Function>& functions) {
  const Golden golden("index");
  size_t checked = 0;
  for (const std::string& name : golden.names(group)) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(functions.contains(name));
    const std::string at = cat(group, "/", name, "/");
    Inputs in;
    std::vector<Tensor> leaves;
    std::vector<std::string> names;
    for (const std::string& key : golden.names(group + "/" + name)) {
      if (key == "y" || key == "g" || key[0] == 'd') continue;
      const GoldenArray& a = golden.array(at + key);
      Tensor t = Tensor::from(a.values, Shape(std::span<const int64_t>(a.shape)));
      if (golden.has(at + "d" + key)) {
        t.requires_grad_();
        leaves.push_back(t);
        names.push_back(key);
      } else {
        t = cast(t, key == "mask" ? DType::boolean : DType::i64);
      }
      in[key] = t;
    }
    ASSERT_FALSE(leaves.empty());
    const Tensor y = functions.at(name)(in);
    expect_near(y, golden.array(at + "y"), "y");
    const GoldenArray& g = golden.array(at + "g");
    const std::vector<Tensor> d = grad(y, leaves, {}, Tensor::from(g.values, Shape(std::span<const int64_t>(g.shape))));
    for (size_t i = 0; i < d.size(); ++i) expect_near(d[i], golden.array(at + "d" + names[i]), "d" + names[i]);
    ++checked;
  }
  EXPECT_EQ(checked, functions.size());
}

TEST(IndexGolden, Gathered) {
  const auto bag = [](BagMode mode) {
    return [mode](Inputs& i) { return embedding_bag(i["x"], i["index"], i["offsets"], mode); };
  };
  check("gathered", {
                        {"gather", [](Inputs& i) { return gather(i["x"], 0, i["index"]); }},
                        {"scatter", [](Inputs& i) { return scatter(i["x"], 1, i["index"], i["z"]); }},
                        {"scatter_add", [](Inputs& i) { return scatter_add(i["x"], 0, i["index"], i["z"]); }},
                        {"index_select", [](Inputs& i) { return index_select(i["x"], 0, i["index"]); }},
                        {"index_add", [](Inputs& i) { return index_add(i["x"], 0, i["index"], i["z"]); }},
                        {"take", [](Inputs& i) { return take(i["x"], i["index"]); }},
                        {"embedding", [](Inputs& i) { return embedding(i["x"], i["index"], 1); }},
                        {"masked_select", [](Inputs& i) { return masked_select(i["x"], i["mask"]); }},
                        {"masked_fill", [](Inputs& i) { return masked_fill(i["x"], i["mask"], 0.5); }},
                        {"embedding_bag_sum", bag(BagMode::sum)},
                        {"embedding_bag_mean", bag(BagMode::mean)},
                        {"embedding_bag_max", bag(BagMode::max)},
                    });
}

TEST(IndexGolden, Moved) {
  const auto padded = [](PadMode mode) { return [mode](Inputs& i) { return pad(i["x"], {2, 1, 3, 0}, mode); }; };
  check("moved", {
                     {"cat",
                      [](Inputs& i) {
                        return cat({i["x"], i["z"], i["x"]}, 1);
                      }},
                     {"stack",
                      [](Inputs& i) {
                        return stack({i["x"], i["z"], i["x"]}, -1);
                      }},
                     {"roll",
                      [](Inputs& i) {
                        return roll(i["x"], {1, -2}, {0, 1});
                      }},
                     {"flip",
                      [](Inputs& i) {
                        return flip(i["x"], {0, 1});
                      }},
                     {"repeat",
                      [](Inputs& i) {
                        return repeat(i["x"], {2, 1, 3});
                      }},
                     {"repeat_interleave", [](Inputs& i) { return repeat_interleave(i["x"], 3, 1); }},
                     {"unfold", [](Inputs& i) { return unfold(i["x"], 2, 3, 2); }},
                     {"diagonal", [](Inputs& i) { return diagonal(i["x"], 1, 3, 2); }},
                     {"diag_embed", [](Inputs& i) { return diag_embed(i["x"], -1, 0, 2); }},
                     {"tril", [](Inputs& i) { return tril(i["x"], -1); }},
                     {"triu", [](Inputs& i) { return triu(i["x"], 1); }},
                     {"movedim", [](Inputs& i) { return movedim(i["x"], 1, 3); }},
                     {"pad_constant",
                      [](Inputs& i) {
                        return pad_constant(i["x"], {1, -2, 2, 0}, 0.5);
                      }},
                     {"pad_reflect", padded(PadMode::reflect)},
                     {"pad_replicate", padded(PadMode::replicate)},
                     {"pad_circular", padded(PadMode::circular)},
                 });
}

TEST(IndexGolden, Contracted) {
  std::map<std::string, Function> functions;
  for (const char* equation : {"ij,jk->ik", "bij,bkj->bik", "ii->i", "ij,j,jk", "...ij,jk->...ki", "iji->j"})
    functions[equation] = [equation](Inputs& i) {
      std::vector<Tensor> operands;
      for (const char* name : {"x", "z", "w"})
        if (i.contains(name)) operands.push_back(i[name]);
      return einsum(equation, operands);
    };
  functions["matmul_vectors"] = [](Inputs& i) { return matmul(i["x"], i["z"]); };
  functions["tensordot"] = [](Inputs& i) { return tensordot(i["x"], i["z"], {2, 0}, {0, 1}); };
  functions["kron"] = [](Inputs& i) { return kron(i["x"], i["z"]); };
  check("contracted", functions);
}

TEST(IndexGolden, Created) {
  const Golden golden("index");
  const auto is = [&](const Tensor& got, const char* name) {
    expect_near(got, golden.array(cat("created/", name)), name);
  };
  const CreateOptions f64{.dtype = DType::f64};
  is(linspace(-1, 3, 7, f64), "linspace");
  is(arange(1, 2.3, 0.3, f64), "arange");
  is(eye(2, 3, f64), "eye");
  is(one_hot(ids({2, 0}), 4), "one_hot");
  is(nonzero(make({0, 1, 2, 0}, {2, 2}, DType::i64)), "nonzero");
  is(stack(meshgrid({arange(2), arange(3)})), "meshgrid_ij");
  is(stack(meshgrid({arange(2), arange(3)}, Indexing::xy)), "meshgrid_xy");
}

}  // namespace
}  // namespace outrace
