#include "outrace/optim/lbfgs.h"

#include <algorithm>
#include <optional>

#include "outrace/graph/recorder.h"
#include "outrace/ops/movement.h"

namespace outrace::optim {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// a += factor * b
void add(Vector& a, double factor, const Vector& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
}

Vector scaled(const Vector& a, double factor) {
  Vector out(a);
  for (double& v : out) v *= factor;
  return out;
}

double largest(const Vector& a) {
  double most = 0;
  for (double v : a) most = std::isnan(v) ? v : std::max(most, std::abs(v));
  return most;
}

// The minimum of the cubic through two points with their slopes, within [low, high].
double cubic_minimum(double x1, double f1, double g1, double x2, double f2, double g2, double low, double high) {
  const double d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2);
  const double square = d1 * d1 - g1 * g2;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double at = x1 <= x2 ? x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
                             : x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2));
  return std::min(std::max(at, low), high);
}

// Rows of one parameter out of flat vectors, and back.
Tensor rows_of(const std::vector<const Vector*>& vectors, int64_t offset, const Shape& shape) {
  const auto count = static_cast<size_t>(shape.numel());
  Vector all;
  for (const Vector* v : vectors) all.insert(all.end(), v->begin() + offset, v->begin() + offset + count);
  std::vector<int64_t> dims{static_cast<int64_t>(vectors.size())};
  dims.insert(dims.end(), shape.begin(), shape.end());
  return Tensor::from(all, Shape(std::span<const int64_t>(dims)));
}

}  // namespace

LBFGS::LBFGS(const ParameterGroups& parameters, const LBFGSOptions& options)
    : options_(options), parameters_(checked_parameters(parameters, "LBFGS")) {
  const auto require = [](bool holds, std::string_view what, double got) {
    if (!holds) fail(ErrorKind::value, "[LBFGS] ", what, "; got ", got);
  };
  require(parameters.groups.size() == 1, "has one group of parameters", static_cast<double>(parameters.groups.size()));
  if (parameters.groups[0].lr) options_.lr = *parameters.groups[0].lr;
  require(options_.lr >= 0, "lr must not be negative", options_.lr);
  require(options_.max_iter > 0, "max_iter must be positive", static_cast<double>(options_.max_iter));
  require(options_.history_size > 0, "history_size must be positive", static_cast<double>(options_.history_size));
  if (options_.max_eval <= 0) options_.max_eval = options_.max_iter * 5 / 4;
}

void LBFGS::zero_grad() {
  for (auto& [name, p] : parameters_) p.zero_grad();
}

Vector LBFGS::values() const {
  Vector x;
  for (const auto& [name, p] : parameters_) {
    const Vector here = p.to_vector<double>();
    x.insert(x.end(), here.begin(), here.end());
  }
  return x;
}

void LBFGS::set_values(const Vector& x) const {
  NoGrad off;
  const double* next = x.data();
  for (const auto& [name, p] : parameters_) {
    const auto count = static_cast<size_t>(p.numel());
    const Tensor value = Tensor::from(std::span<const double>(next, count), p.shape());
    Tensor(p).assign(value.to(p.dtype()).to(p.device()).eval());
    next += count;
  }
}

double LBFGS::evaluate(const Closure& closure, Vector& gradient, State& s) const {
  const Tensor loss = closure();
  ++s.evaluations;
  Recorder::current().flush();  // loss and all gradients in one program
  gradient.clear();
  for (const auto& [name, p] : parameters_) {
    const Tensor g = p.grad();
    const Vector here = g.defined() ? g.to_vector<double>() : Vector(static_cast<size_t>(p.numel()));
    gradient.insert(gradient.end(), here.begin(), here.end());
  }
  return loss.item();
}

double LBFGS::step(const Closure& closure) {
  const Vector before = values();
  State s = state_;
  try {
    const double loss = iterate(closure, s);
    state_ = std::move(s);
    return loss;
  } catch (...) {
    set_values(before);
    throw;
  }
}

// The two-loop recursion.
void LBFGS::find_direction(State& s, const Vector& gradient) const {
  if (s.iterations == 1) {
    s.direction = scaled(gradient, -1);
    s.gradient_changes.clear();
    s.moves.clear();
    s.scale = 1;
    return;
  }
  Vector y = gradient;
  add(y, -1, s.gradient);
  Vector move = scaled(s.direction, s.step);
  const double curvature = dot(y, move);
  if (curvature > 1e-10) {
    if (static_cast<int64_t>(s.moves.size()) == options_.history_size) {
      s.gradient_changes.pop_front();
      s.moves.pop_front();
    }
    s.scale = curvature / dot(y, y);
    s.gradient_changes.push_back(std::move(y));
    s.moves.push_back(std::move(move));
  }
  const size_t count = s.moves.size();
  Vector weight(count), inverse(count);
  Vector d = scaled(gradient, -1);
  for (size_t i = count; i-- > 0;) {
    inverse[i] = 1 / dot(s.gradient_changes[i], s.moves[i]);
    weight[i] = dot(s.moves[i], d) * inverse[i];
    add(d, -weight[i], s.gradient_changes[i]);
  }
  d = scaled(d, s.scale);
  for (size_t i = 0; i < count; ++i) add(d, weight[i] - dot(s.gradient_changes[i], d) * inverse[i], s.moves[i]);
  s.direction = std::move(d);
}

double LBFGS::iterate(const Closure& closure, State& s) const {
  const int64_t evaluations_before = s.evaluations;
  Vector gradient;
  const double first_loss = evaluate(closure, gradient, s);
  double loss = first_loss;
  if (largest(gradient) <= options_.tolerance_grad) return first_loss;
  for (int64_t i = 1;; ++i) {
    ++s.iterations;
    find_direction(s, gradient);
    s.gradient = gradient;
    const double loss_before = loss;
    double sum = 0;
    for (double g : gradient) sum += std::abs(g);
    double t = s.iterations == 1 ? std::min(1.0, 1 / sum) * options_.lr : options_.lr;
    s.step = t;
    const double slope = dot(gradient, s.direction);
    if (slope > -options_.tolerance_change) break;
    Vector x = values();
    if (options_.line_search == LineSearch::strong_wolfe) {
      Point p = line_search(closure, s, x, {0, loss, gradient, slope}, t);
      s.step = t = p.t;
      loss = p.loss;
      gradient = std::move(p.gradient);
      add(x, t, s.direction);
      set_values(x);
    } else {
      add(x, t, s.direction);
      set_values(x);
      if (i != options_.max_iter) loss = evaluate(closure, gradient, s);
    }
    if (i == options_.max_iter || s.evaluations - evaluations_before >= options_.max_eval ||
        largest(gradient) <= options_.tolerance_grad || largest(s.direction) * t <= options_.tolerance_change ||
        std::abs(loss - loss_before) < options_.tolerance_change)
      break;
  }
  return first_loss;
}

// Brackets a step that satisfies the strong Wolfe conditions, then narrows the bracket.
LBFGS::Point LBFGS::line_search(const Closure& closure, State& s, const Vector& x, const Point& start, double t) const {
  constexpr double kDecrease = 1e-4, kCurvature = 0.9;  // c1 and c2 for quasi-Newton directions
  constexpr int kMost = 25;
  const Vector& d = s.direction;
  const auto look = [&](double at) {
    Vector moved = x;
    add(moved, at, d);
    set_values(moved);
    Point p{at, 0, {}, 0};
    p.loss = evaluate(closure, p.gradient, s);
    p.slope = dot(p.gradient, d);
    return p;
  };
  const auto too_high = [&](const Point& p) { return p.loss > start.loss + kDecrease * p.t * start.slope; };
  const auto flat_enough = [&](const Point& p) { return std::abs(p.slope) <= -kCurvature * start.slope; };

  Point previous = start, now = look(t);
  std::optional<std::pair<Point, Point>> bracket;
  int tries = 0;
  for (; tries < kMost; ++tries) {
    if (too_high(now) || (tries > 1 && now.loss >= previous.loss) || (!flat_enough(now) && now.slope >= 0)) {
      bracket.emplace(previous, now);
      break;
    }
    if (flat_enough(now)) return now;
    const double next = cubic_minimum(previous.t, previous.loss, previous.slope, now.t, now.loss, now.slope,
                                      now.t + 0.01 * (now.t - previous.t), now.t * 10);
    previous = std::move(now);
    now = look(next);
  }
  if (!bracket) bracket.emplace(start, now);

  const auto in_order = [&] { return bracket->first.loss <= bracket->second.loss; };
  Point* low = in_order() ? &bracket->first : &bracket->second;
  Point* high = in_order() ? &bracket->second : &bracket->first;
  bool little_progress = false;
  for (; tries < kMost; ++tries) {
    const Point &a = bracket->first, &b = bracket->second;
    const double from = std::min(a.t, b.t), to = std::max(a.t, b.t);
    if ((to - from) * largest(d) < options_.tolerance_change) break;
    double at = cubic_minimum(a.t, a.loss, a.slope, b.t, b.loss, b.slope, from, to);
    // A step too near an end of the bracket is moved inwards the second time.
    const double margin = 0.1 * (to - from);
    if (std::min(to - at, at - from) < margin) {
      const bool move = little_progress || at >= to || at <= from;
      if (move) at = std::abs(at - to) < std::abs(at - from) ? to - margin : from + margin;
      little_progress = !move;
    } else {
      little_progress = false;
    }
    Point p = look(at);
    if (too_high(p) || p.loss >= low->loss) {
      *high = std::move(p);
      low = in_order() ? &bracket->first : &bracket->second;
      high = in_order() ? &bracket->second : &bracket->first;
      continue;
    }
    const bool done = flat_enough(p);
    if (!done && p.slope * (high->t - low->t) >= 0) *high = *low;
    *low = std::move(p);
    if (done) break;
  }
  return *low;
}

StateDict LBFGS::state_dict() const {
  StateDict out;
  int64_t offset = 0;
  for (const auto& [name, p] : parameters_) {
    out.numbers.emplace_back("state." + name + ".numel", static_cast<double>(p.numel()));
    if (state_.iterations > 0) {
      std::vector<const Vector*> changes, moves;
      for (const Vector& v : state_.gradient_changes) changes.push_back(&v);
      for (const Vector& v : state_.moves) moves.push_back(&v);
      const std::string prefix = "state." + name + ".";
      out.tensors.emplace_back(prefix + "d", rows_of({&state_.direction}, offset, p.shape()));
      out.tensors.emplace_back(prefix + "prev_flat_grad", rows_of({&state_.gradient}, offset, p.shape()));
      out.tensors.emplace_back(prefix + "old_dirs", rows_of(changes, offset, p.shape()));
      out.tensors.emplace_back(prefix + "old_stps", rows_of(moves, offset, p.shape()));
    }
    offset += p.numel();
  }
  out.numbers.emplace_back("lr", options_.lr);
  out.numbers.emplace_back("n_iter", static_cast<double>(state_.iterations));
  out.numbers.emplace_back("func_evals", static_cast<double>(state_.evaluations));
  out.numbers.emplace_back("t", state_.step);
  out.numbers.emplace_back("H_diag", state_.scale);
  return out;
}

void LBFGS::load_state_dict(const StateDict& state) {
  StateReader reader(state, "LBFGS.load_state_dict");
  State s;
  const double lr = reader.number("lr");
  s.iterations = reader.count("n_iter");
  s.evaluations = reader.count("func_evals");
  s.step = reader.number("t");
  s.scale = reader.number("H_diag");
  std::vector<Vector> d(1), gradient(1), changes, moves;
  bool first = true;
  for (const auto& [name, p] : parameters_) {
    const std::string prefix = "state." + name + ".";
    if (reader.count(prefix + "numel") != p.numel()) reader.note(cat(prefix, "numel (", p.numel(), " needed)"));
    if (s.iterations == 0) continue;
    const auto take = [&](const char* key, std::vector<Vector>& rows, bool any_count) {
      const Tensor t = reader.stack(prefix + key, p.shape());
      if (!t.defined()) return;
      const auto count = static_cast<size_t>(t.size(0));
      if (first && any_count) rows.resize(count);
      if (rows.size() != count)
        return reader.note(cat(prefix, key, " (", count, " entries, ", rows.size(), " needed)"));
      const Vector all = t.to_vector<double>();
      for (size_t i = 0; i < count; ++i)
        rows[i].insert(rows[i].end(), all.begin() + static_cast<int64_t>(i) * p.numel(),
                       all.begin() + static_cast<int64_t>(i + 1) * p.numel());
    };
    take("d", d, false);
    take("prev_flat_grad", gradient, false);
    take("old_dirs", changes, true);
    take("old_stps", moves, true);
    first = false;
  }
  if (changes.size() != moves.size()) reader.note("old_dirs and old_stps (of different lengths)");
  reader.finish();
  options_.lr = lr;
  s.direction = std::move(d[0]);
  s.gradient = std::move(gradient[0]);
  s.gradient_changes.assign(changes.begin(), changes.end());
  s.moves.assign(moves.begin(), moves.end());
  state_ = std::move(s);
}

}  // namespace outrace::optim
