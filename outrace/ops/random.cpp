#include "outrace/ops/random.h"

#include <mutex>

#include "outrace/core/random.h"
#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/elementwise.h"

namespace outrace {
namespace {

struct Generator {
  std::mutex lock;
  RandomState next{0, 0};
};
Generator& generator() {
  static auto* g = new Generator;
  return *g;
}

RandomState draw() {
  Generator& g = generator();
  std::lock_guard hold(g.lock);
  const RandomState now = g.next;
  ++g.next.serial;
  return now;
}

ScalarValue integer(uint64_t v) {
  ScalarValue s;
  s.integer = static_cast<int64_t>(v);
  return s;
}

Tensor random(Distribution distribution, double a, double b, const Shape& shape, CreateOptions o) {
  const RandomState state = draw();
  auto seed = std::make_shared<ScalarValue>(integer(state.seed));
  auto serial = std::make_shared<ScalarValue>(integer(state.serial));
  Recorder& r = Recorder::current();
  if (r.capture)
    r.capture->on_replay.push_back([seed, serial] {
      const RandomState now = draw();
      *seed = integer(now.seed);
      *serial = integer(now.serial);
    });
  const Tensor s = scalar(*seed, DType::i64, o.device, seed), n = scalar(*serial, DType::i64, o.device, serial);
  const NodePtr inputs[] = {s.node_ptr(), n.node_ptr()};
  return Tensor(r.record(kRandom, inputs, o.dtype, shape, o.device, RandomAttrs{distribution, a, b}, {}, true));
}

}  // namespace

void manual_seed(uint64_t seed) {
  Generator& g = generator();
  std::lock_guard hold(g.lock);
  g.next = {seed, 0};
}

Tensor rand(const Shape& shape, CreateOptions o) { return random(Distribution::uniform, 0, 1, shape, o); }
Tensor randn(const Shape& shape, CreateOptions o) { return random(Distribution::normal, 0, 1, shape, o); }
Tensor rand_like(const Tensor& x) { return rand(x.shape(), {.dtype = x.dtype(), .device = x.device()}); }
Tensor randn_like(const Tensor& x) { return randn(x.shape(), {.dtype = x.dtype(), .device = x.device()}); }
Tensor uniform(const Shape& shape, double low, double high, CreateOptions o) {
  return random(Distribution::uniform, low, high, shape, o);
}
Tensor normal(const Shape& shape, double mean, double deviation, CreateOptions o) {
  return random(Distribution::normal, mean, deviation, shape, o);
}
Tensor randint(int64_t low, int64_t high, const Shape& shape, CreateOptions o) {
  if (low >= high) fail(ErrorKind::value, "[randint] low must be below high; got ", low, " and ", high);
  // Attributes are doubles: a bound that is none would move in silence.
  for (int64_t v : {low, high})
    if (std::abs(static_cast<double>(v)) >= 0x1p63 || static_cast<int64_t>(static_cast<double>(v)) != v)
      fail(ErrorKind::value,
           "[randint] bounds beyond 2^53 must be multiples of a power of two that a double holds; got ", v);
  return random(Distribution::integer, static_cast<double>(low), static_cast<double>(high), shape, o);
}

Tensor dropout(At at, double p, bool training) {
  const Tensor& x = at.tensor;
  if (!(p >= 0 && p <= 1)) fail(ErrorKind::value, "[dropout] p must be from 0 to 1; got ", p, call_site(at.where));
  if (!is_float(x.dtype()))
    fail(ErrorKind::dtype, "[dropout] needs floating point; got ", name_of(x.dtype()), call_site(at.where));
  if (!training || p == 0) return x;
  const Tensor kept = rand(x.shape(), {DType::f32, x.device()}) >= p;
  return select(kept, mul(at, p == 1 ? 0 : 1 / (1 - p)), 0.0);
}

const OpDef kRandom(OpFacts{.name = "random", .kind = OpKind::producer});

}  // namespace outrace
