// label: backend
// Every module and loss of nn/ on GPUs: outputs, gradients of inputs and parameters, buffers and what evaluation mode
// gives, beside the CPU's.
#include "gpu_support.h"
#include "outrace/graph/recorder.h"

namespace outrace {
namespace {

using Inputs = std::vector<Tensor>;
using Values = std::vector<double>;

struct Case {
  std::string name;  // of the class, and after a comma which form of it
  std::shared_ptr<nn::Module> module;
  std::function<Tensor(const Inputs&)> call;
  Inputs inputs;     // on the CPU
  double terms = 1;  // that an element of a result or gradient adds up at most
};

Tensor numbers(const Shape& shape, double low = -2, double high = 2) { return uniform(shape, low, high).eval(); }
Tensor ids(const std::vector<int64_t>& v) { return Tensor::from(v, {static_cast<int64_t>(v.size())}); }

template <class M>
Case of(std::string name, std::shared_ptr<M> module, Tensor x = numbers({6, 4}), double terms = 6) {
  return {std::move(name), module, [module](const Inputs& in) { return (*module)(in[0]); }, {std::move(x)}, terms};
}
template <class M, class... Args>
Case of(std::string name, Args... args) {
  return of(std::move(name), std::make_shared<M>(args...));
}

std::vector<Case> cases() {
  manual_seed(1);
  std::vector<Case> all{
      of<nn::ReLU>("ReLU"),
      of<nn::ReLU6>("ReLU6"),
      of<nn::Sigmoid>("Sigmoid"),
      of<nn::LogSigmoid>("LogSigmoid"),
      of<nn::Tanh>("Tanh"),
      of<nn::Tanhshrink>("Tanhshrink"),
      of<nn::SiLU>("SiLU"),
      of<nn::Mish>("Mish"),
      of<nn::SELU>("SELU"),
      of<nn::Hardsigmoid>("Hardsigmoid"),
      of<nn::Hardswish>("Hardswish"),
      of<nn::Softsign>("Softsign"),
      of<nn::LeakyReLU>("LeakyReLU"),
      of<nn::ELU>("ELU"),
      of<nn::CELU>("CELU", 0.5),
      of<nn::Softshrink>("Softshrink"),
      of<nn::Hardshrink>("Hardshrink"),
      of<nn::GELU>("GELU"),
      of<nn::GELU>("GELU, tanh", nn::GeluForm::tanh),
      of<nn::Softplus>("Softplus"),
      of<nn::Hardtanh>("Hardtanh"),
      of<nn::Threshold>("Threshold", 0.5, -1.0),
      of<nn::PReLU>("PReLU", 4),
      of<nn::GLU>("GLU"),
      of<nn::Softmax>("Softmax"),
      of<nn::LogSoftmax>("LogSoftmax"),
      of<nn::Softmax>("Softmax, of columns", 0),
      of<nn::Linear>("Linear", 4, 3),
      of("Embedding", std::make_shared<nn::Embedding>(6, 3, nn::EmbeddingOptions{.padding_idx = 2}),
         ids({1, 2, 5, 1, 1, 0})),
      of<nn::LayerNorm>("LayerNorm", Shape{4}),
      of("LayerNorm, of two axes", std::make_shared<nn::LayerNorm>(Shape{3, 4}, nn::LayerNormOptions{.bias = false}),
         numbers({2, 3, 4}), 12),
      of<nn::RMSNorm>("RMSNorm", Shape{4}),
      of("GroupNorm", std::make_shared<nn::GroupNorm>(2, 4), numbers({3, 4, 5}), 15),
      of<nn::BatchNorm1d>("BatchNorm1d", 4),
      of("BatchNorm1d, of sequences", std::make_shared<nn::BatchNorm1d>(4), numbers({3, 4, 5}), 15),
      of<nn::Dropout>("Dropout", 0.3),
      of<nn::Identity>("Identity"),
      of("Flatten", std::make_shared<nn::Flatten>(), numbers({2, 3, 2})),
      of<nn::Unflatten>("Unflatten", 1, std::vector<int64_t>{2, -1}),
      of("Sequential",
         std::make_shared<nn::Sequential>(std::make_shared<nn::Linear>(4, 5), std::make_shared<nn::ReLU>(),
                                          std::make_shared<nn::Linear>(5, 3))),
  };
  const auto bilinear = std::make_shared<nn::Bilinear>(4, 3, 2);
  all.push_back({"Bilinear",
                 bilinear,
                 [bilinear](const Inputs& x) { return (*bilinear)(x[0], x[1]); },
                 {numbers({6, 4}), numbers({6, 3})},
                 12});
  const auto list =
      std::make_shared<nn::ModuleList>(std::make_shared<nn::Linear>(4, 3), std::make_shared<nn::Linear>(4, 3));
  all.push_back({"ModuleList",
                 list,
                 [list](const Inputs& x) { return (*list)[0](x[0]) + (*list)[1](x[0]); },
                 {numbers({6, 4})},
                 8});
  const auto dict = std::make_shared<nn::ModuleDict>();
  dict->add("a", std::make_shared<nn::Linear>(4, 4)).add("b", std::make_shared<nn::Linear>(4, 3));
  all.push_back(
      {"ModuleDict", dict, [dict](const Inputs& x) { return (*dict)["b"]((*dict)["a"](x[0])); }, {numbers({6, 4})}, 8});
  return all;
}

// The target is the last input but for those of three.
template <class Loss>
Case loss_of(std::string name, Loss loss, Inputs inputs) {
  return {std::move(name), nullptr,
          [loss](const Inputs& x) {
            if constexpr (requires { loss(x[0], x[1]); })
              return loss(x[0], x[1]);
            else
              return loss(x[0], x[1], x[2]);
          },
          std::move(inputs), 24};
}

std::vector<Case> losses() {
  manual_seed(2);
  const Tensor x = numbers({6, 4}), y = numbers({6, 4}), z = numbers({6, 4}), p = numbers({6, 4}, 0.05, 0.95),
               q = numbers({6, 4}, 0.05, 0.95), classes = ids({0, 3, -100, 1, 2, 2});
  return {
      loss_of("CrossEntropyLoss", nn::CrossEntropyLoss(), {x, classes}),
      loss_of("CrossEntropyLoss, smoothed", nn::CrossEntropyLoss({.label_smoothing = 0.1}), {x, classes}),
      loss_of("CrossEntropyLoss, of probabilities", nn::CrossEntropyLoss(), {x, softmax(y).eval()}),
      loss_of("NLLLoss", nn::NLLLoss(), {x, classes}),
      loss_of("MSELoss", nn::MSELoss(), {x, y}),
      loss_of("L1Loss", nn::L1Loss(), {x, y}),
      loss_of("HuberLoss", nn::HuberLoss(), {x, y}),
      loss_of("SmoothL1Loss", nn::SmoothL1Loss(), {x, y}),
      loss_of("BCELoss", nn::BCELoss(), {p, q}),
      loss_of("BCEWithLogitsLoss", nn::BCEWithLogitsLoss(), {x, q}),
      loss_of("KLDivLoss", nn::KLDivLoss(), {x, p}),
      loss_of("CosineEmbeddingLoss", nn::CosineEmbeddingLoss(),
              {x, y, Tensor::from(Values{1, -1, 1, -1, 1, -1}, {6}).to(DType::f32).eval()}),
      loss_of("TripletMarginLoss", nn::TripletMarginLoss(), {x, y, z}),
  };
}

// Everything that comes out of a case on a device: output, gradients, buffers, output in evaluation.
std::vector<std::pair<std::string, Values>> results_of(const Case& c, Device device) {
  Inputs x;
  for (const Tensor& t : c.inputs) {
    x.push_back(t.to(device).eval().detach());
    if (is_float(t.dtype())) x.back().requires_grad_();
  }
  nn::NamedTensors start;
  if (c.module) {
    for (const auto& [name, t] : c.module->state_dict()) start.emplace_back(name, snapshot(t));
    c.module->to(device);
    c.module->train();
    c.module->zero_grad();
  }
  manual_seed(9);
  std::vector<std::pair<std::string, Tensor>> out;
  out.emplace_back("output", c.call(x));
  // An upstream gradient that differs from element to element.
  const Tensor y = out[0].second;
  const Tensor upstream = reshape(cos(arange(0, static_cast<double>(y.numel()), 1, {.dtype = DType::f32})), y.shape());
  sum(y * upstream.to(device)).backward();
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i].requires_grad()) out.emplace_back(cat("gradient of input ", i), x[i].grad());
  if (c.module) {
    for (const auto& [name, p] : c.module->named_parameters()) out.emplace_back("gradient of " + name, p.grad());
    for (const auto& [name, b] : c.module->named_buffers()) out.emplace_back(name, b);
  }
  Recorder::current().flush();
  std::vector<std::pair<std::string, Values>> values;
  for (const auto& [name, t] : out) {
    if (!t.defined()) continue;  // a loss whose target takes no part
    EXPECT_EQ(t.device(), device) << name;
    values.emplace_back(name, t.to_vector<double>());
  }
  if (c.module) {
    c.module->eval();
    NoGrad off;
    values.emplace_back("output in evaluation", c.call(x).to_vector<double>());
    c.module->to(Device());
    c.module->load_state_dict(start);
  }
  return values;
}

// Both sides round each of a result's terms and of the few ops around them: 64 roundings and two a term, of the largest
// number that took part.
void check(const std::vector<Case>& all) {
  for (const Device d : gpus())
    for (const Case& c : all) {
      SCOPED_TRACE(cat(c.name, " on ", d));
      const auto reference = results_of(c, Device()), got = results_of(c, d);
      double largest = 1;
      for (const Tensor& t : c.inputs)
        if (is_float(t.dtype())) largest = std::max(largest, largest_of(t.to_vector<double>()));
      for (const auto& [name, values] : reference) largest = std::max(largest, largest_of(values));
      const double bound = (64 + 2 * c.terms) * epsilon_of(DType::f32) / 2 * largest;
      ASSERT_EQ(got.size(), reference.size());
      for (size_t k = 0; k < got.size(); ++k) {
        ASSERT_EQ(got[k].first, reference[k].first);
        ASSERT_EQ(got[k].second.size(), reference[k].second.size()) << got[k].first;
        for (size_t i = 0; i < got[k].second.size(); ++i)
          ASSERT_NEAR(got[k].second[i], reference[k].second[i], bound) << got[k].first << ", " << i;
      }
    }
}

std::set<std::string> classes_of(const std::vector<Case>& all) {
  std::set<std::string> names;
  for (const Case& c : all) names.insert(c.name.substr(0, c.name.find(',')));
  return names;
}

TEST(GpuModules, EveryModuleGivesTheCpusOutputsAndGradients) { check(cases()); }
TEST(GpuModules, EveryLossGivesTheCpusValueAndGradients) { check(losses()); }

TEST(GpuModules, TheListsHoldEveryModuleAndLoss) {
  std::set<std::string> modules = names_in_headers("nn", "class (\\w+)( final)? : public Module"),
                        activations = names_in_headers("nn", "^OUTRACE_ACTIVATION\\w*\\((\\w+),");
  modules.erase("name");  // of the macros
  modules.insert(activations.begin(), activations.end());
  EXPECT_GT(modules.size(), 35u);
  EXPECT_EQ(modules, classes_of(cases()));
  EXPECT_EQ(names_in_headers("nn", "^using (\\w+Loss) ="), classes_of(losses()));
}

// Masks of the same seed are the same elements, forward, backward and at each replay.
TEST(GpuModules, DropoutMasksAreTheCpusToTheLastBit) {
  const auto run = [](Device d) {
    manual_seed(21);
    nn::Dropout dropout(0.4);
    Tensor x = ones({50, 41}, {.device = d}).eval();
    x.requires_grad_();
    std::vector<std::vector<float>> out;
    const Tensor y = dropout(x);
    sum(y).backward();
    out.push_back(y.to_vector<float>());
    out.push_back(x.grad().to_vector<float>());
    EXPECT_EQ(out[0], out[1]);
    auto captured = capture([&](const Tensor& in) { return dropout(in); });
    const Tensor in = ones({50, 41}, {.device = d}).eval();
    for (int i = 0; i < 3; ++i) out.push_back(captured(in).to_vector<float>());
    EXPECT_NE(out[2], out[3]);
    return out;
  };
  for (const Device d : gpus()) EXPECT_EQ(run(d), run(Device()));
}

}  // namespace
}  // namespace outrace
