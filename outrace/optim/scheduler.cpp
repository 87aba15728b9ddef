#include "outrace/optim/scheduler.h"

#include <algorithm>
#include <numbers>

namespace outrace::optim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void require(bool holds, std::string_view who, std::string_view what, double got) {
  if (!holds) fail(ErrorKind::value, "[", who, "] ", what, "; got ", got);
}

double real(int64_t n) { return static_cast<double>(n); }

double cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

// Rates or functions for each group from one for all or one for each.
template <class T>
std::vector<T> for_groups(std::vector<T> given, const Optimizer& optimizer, std::string_view who) {
  const size_t groups = optimizer.groups().size();
  if (given.size() == 1) given.resize(groups, given[0]);
  require(given.size() == groups, who, cat("needs one value or one for each of ", groups, " groups"),
          static_cast<double>(given.size()));
  return given;
}

}  // namespace

LRScheduler::LRScheduler(Optimizer& optimizer, Rule rule, const char* name)
    : optimizer_(&optimizer), rule_(std::move(rule)), name_(name) {
  for (size_t g = 0; g < optimizer.groups().size(); ++g) {
    if (std::isnan(optimizer.groups()[g].initial_lr)) optimizer.set_initial_lr(g, optimizer.lr(g));
    base_.push_back(optimizer.groups()[g].initial_lr);
  }
  set_rates(epoch_);
}

// All that may throw comes before the first change.
void LRScheduler::set_rates(int64_t epoch) const {
  std::vector<double> rates;
  for (size_t g = 0; g < base_.size(); ++g) rates.push_back(lr_at(epoch, g));
  for (size_t g = 0; rule_.momentum && g < base_.size(); ++g) optimizer_->set_momentum(g, rule_.momentum(epoch));
  for (size_t g = 0; g < base_.size(); ++g) optimizer_->set_lr(g, rates[g]);
}

void LRScheduler::step() {
  if (epoch_ >= rule_.steps)
    fail(ErrorKind::value, "[", name_, "] step ", epoch_ + 1, " of ", rule_.steps, ": the schedule is over");
  set_rates(epoch_ + 1);
  ++epoch_;
}

StateDict LRScheduler::state_dict() const {
  StateDict out;
  out.numbers.emplace_back("epoch", real(epoch_));
  for (size_t g = 0; g < base_.size(); ++g) out.numbers.emplace_back(cat("base_lrs.", g), base_[g]);
  return out;
}

void LRScheduler::load_state_dict(const StateDict& state) {
  StateReader reader(state, cat(name_, ".load_state_dict"));
  const int64_t epoch = reader.count("epoch");
  if (epoch > rule_.steps) reader.note(cat("epoch (", epoch, " of ", rule_.steps, ")"));
  std::vector<double> base;
  for (size_t g = 0; g < base_.size(); ++g) base.push_back(reader.number(cat("base_lrs.", g)));
  reader.finish();
  epoch_ = epoch;
  base_ = base;
  for (size_t g = 0; g < base_.size(); ++g) optimizer_->set_initial_lr(g, base_[g]);
  set_rates(epoch_);
}

StepLR::StepLR(Optimizer& optimizer, const StepLROptions& o)
    : LRScheduler(optimizer, {[o](double base, int64_t t, size_t) {
                    require(o.step_size > 0, "StepLR", "step_size must be positive", real(o.step_size));
                    return base * std::pow(o.gamma, real(t / o.step_size));
                  }},
                  "StepLR") {}

MultiStepLR::MultiStepLR(Optimizer& optimizer, const MultiStepLROptions& o)
    : LRScheduler(optimizer, {[o](double base, int64_t t, size_t) {
                    const auto reached = std::count_if(o.milestones.begin(), o.milestones.end(),
                                                       [t](int64_t milestone) { return milestone <= t; });
                    return base * std::pow(o.gamma, real(reached));
                  }},
                  "MultiStepLR") {}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma)
    : LRScheduler(optimizer, {[gamma](double base, int64_t t, size_t) { return base * std::pow(gamma, real(t)); }},
                  "ExponentialLR") {}

ConstantLR::ConstantLR(Optimizer& optimizer, const ConstantLROptions& o)
    : LRScheduler(optimizer,
                  {[o](double base, int64_t t, size_t) { return t < o.total_iters ? base * o.factor : base; }},
                  "ConstantLR") {}

LinearLR::LinearLR(Optimizer& optimizer, const LinearLROptions& o)
    : LRScheduler(optimizer, {[o](double base, int64_t t, size_t) {
                    if (t >= o.total_iters) return base * o.end_factor;
                    return base * (o.start_factor + (o.end_factor - o.start_factor) * real(t) / real(o.total_iters));
                  }},
                  "LinearLR") {}

PolynomialLR::PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& o)
    : LRScheduler(optimizer, {[o](double base, int64_t t, size_t) {
                    if (t >= o.total_iters) return 0.0;
                    return base * std::pow(1 - real(t) / real(o.total_iters), o.power);
                  }},
                  "PolynomialLR") {}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& o)
    : LRScheduler(optimizer, {[o](double base, int64_t t, size_t) {
                    require(o.t_max > 0, "CosineAnnealingLR", "t_max must be positive", real(o.t_max));
                    return cosine(base, o.eta_min, real(t % (2 * o.t_max)) / real(o.t_max));
                  }},
                  "CosineAnnealingLR") {}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer,
                                                         const CosineAnnealingWarmRestartsOptions& o)
    : LRScheduler(optimizer, {[o](double base, int64_t t, size_t) {
                    require(o.t_0 > 0, "CosineAnnealingWarmRestarts", "t_0 must be positive", real(o.t_0));
                    require(o.t_mult > 0, "CosineAnnealingWarmRestarts", "t_mult must be positive", real(o.t_mult));
                    int64_t length = o.t_0;
                    if (o.t_mult == 1) t %= length;
                    for (; t >= length; length *= o.t_mult) t -= length;
                    return cosine(base, o.eta_min, real(t) / real(length));
                  }},
                  "CosineAnnealingWarmRestarts") {}

namespace {

struct Phase {
  double end;
  double lr_from, lr_to, momentum_from, momentum_to;
};

// Where step t lies: the phase and the share of it that is over. Ends are fractions of steps, as PyTorch's.
std::pair<const Phase*, double> phase_at(const std::vector<Phase>& phases, double t) {
  double start = 0;
  for (size_t i = 0; i < phases.size(); ++i) {
    const Phase& p = phases[i];
    if (t <= p.end || i + 1 == phases.size())
      return {&p, p.end > start ? std::min(1.0, (t - start) / (p.end - start)) : 1.0};
    start = p.end;
  }
  return {&phases.back(), 1};
}

std::vector<Phase> one_cycle_phases(const OneCycleLROptions& o, double peak) {
  const double start = peak / o.div_factor, last = start / o.final_div_factor;
  const double total = real(o.total_steps), top = o.pct_start * total - 1;
  const double low = o.base_momentum, high = o.max_momentum;
  if (o.three_phase)
    return {{top, start, peak, high, low},
            {2 * o.pct_start * total - 2, peak, start, low, high},
            {total - 1, start, last, high, high}};
  return {{top, start, peak, high, low}, {total - 1, peak, last, low, high}};
}

}  // namespace

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& o)
    : LRScheduler(
          optimizer,
          [&] {
            require(o.total_steps > 0, "OneCycleLR", "total_steps must be positive", real(o.total_steps));
            require(o.pct_start >= 0 && o.pct_start <= 1, "OneCycleLR", "pct_start must be in [0, 1]", o.pct_start);
            require(o.div_factor > 0, "OneCycleLR", "div_factor must be positive", o.div_factor);
            require(o.final_div_factor > 0, "OneCycleLR", "final_div_factor must be positive", o.final_div_factor);
            for (const Optimizer::Group& g : optimizer.groups())
              require(!o.cycle_momentum || g.momentum > 0, "OneCycleLR",
                      "cycle_momentum needs an optimizer with a momentum or beta1", g.momentum);
            std::vector<std::vector<Phase>> of_group;
            for (double peak : for_groups(o.max_lr, optimizer, "OneCycleLR"))
              of_group.push_back(one_cycle_phases(o, peak));
            const auto between = [linear = o.linear](double from, double to, double share) {
              return linear ? from + (to - from) * share : cosine(from, to, share);
            };
            Rule rule;
            rule.steps = o.total_steps;
            rule.lr = [of_group, between](double, int64_t t, size_t group) {
              const auto [phase, share] = phase_at(of_group.at(group), real(t));
              return between(phase->lr_from, phase->lr_to, share);
            };
            if (o.cycle_momentum)
              rule.momentum = [phases = of_group[0], between](int64_t t) {
                const auto [phase, share] = phase_at(phases, real(t));
                return between(phase->momentum_from, phase->momentum_to, share);
              };
            return rule;
          }(),
          "OneCycleLR") {}

LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Factor> factors)
    : LRScheduler(optimizer,
                  {[all = for_groups(std::move(factors), optimizer, "LambdaLR")](double base, int64_t t, size_t group) {
                    return base * all.at(group)(t);
                  }},
                  "LambdaLR") {}

SequentialLR::SequentialLR(Optimizer& optimizer, const std::vector<LRScheduler>& schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler(
          optimizer,
          [&] {
            require(!schedulers.empty() && schedulers.size() == milestones.size() + 1, "SequentialLR",
                    cat("needs one milestone fewer than its ", schedulers.size(), " schedulers"),
                    static_cast<double>(milestones.size()));
            require(std::is_sorted(milestones.begin(), milestones.end()), "SequentialLR",
                    "milestones must ascend; the first", real(milestones.empty() ? 0 : milestones[0]));
            std::vector<Rule> rules;
            for (const LRScheduler& s : schedulers) rules.push_back(rule_of(s));
            const auto at = [rules, milestones](int64_t& t) -> const Rule& {
              size_t i = 0;
              while (i < milestones.size() && milestones[i] <= t) ++i;
              if (i > 0) t -= milestones[i - 1];
              return rules[i];
            };
            Rule rule;
            rule.lr = [at](double base, int64_t t, size_t group) { return at(t).lr(base, t, group); };
            if (rules.back().steps < std::numeric_limits<int64_t>::max())
              rule.steps = rules.back().steps + (milestones.empty() ? 0 : milestones.back());
            return rule;
          }(),
          "SequentialLR") {}

ChainedScheduler::ChainedScheduler(Optimizer& optimizer, const std::vector<LRScheduler>& schedulers)
    : LRScheduler(
          optimizer,
          [&] {
            std::vector<Rule> rules;
            Rule rule;
            for (const LRScheduler& s : schedulers) {
              rules.push_back(rule_of(s));
              rule.steps = std::min(rule.steps, rules.back().steps);
            }
            rule.lr = [rules](double lr, int64_t t, size_t group) {
              for (const Rule& r : rules) lr = r.lr(lr, t, group);
              return lr;
            };
            return rule;
          }(),
          "ChainedScheduler") {}

WarmupLR::WarmupLR(Optimizer& optimizer, int64_t steps)
    : WarmupLR(optimizer, steps, ConstantLR(optimizer, {.factor = 1})) {}

WarmupLR::WarmupLR(Optimizer& optimizer, int64_t steps, const LRScheduler& then)
    : LRScheduler(
          optimizer,
          [&] {
            require(steps > 0, "WarmupLR", "steps must be positive", real(steps));
            Rule rule;
            rule.lr = [steps, after = rule_of(then)](double base, int64_t t, size_t group) {
              return t < steps - 1 ? base * real(t + 1) / real(steps) : after.lr(base, t - (steps - 1), group);
            };
            if (rule_of(then).steps < std::numeric_limits<int64_t>::max()) rule.steps = rule_of(then).steps + steps - 1;
            return rule;
          }(),
          "WarmupLR") {}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& o)
    : optimizer_(&optimizer), options_(o), best_(o.max ? -kInfinity : kInfinity) {
  require(o.factor < 1, "ReduceLROnPlateau", "factor must be below 1", o.factor);
  options_.min_lr = for_groups(o.min_lr, optimizer, "ReduceLROnPlateau");
}

bool ReduceLROnPlateau::better(double metric) const {
  const double t = options_.threshold;
  if (options_.max) return metric > (options_.absolute_threshold ? best_ + t : best_ * (1 + t));
  return metric < (options_.absolute_threshold ? best_ - t : best_ * (1 - t));
}

void ReduceLROnPlateau::step(double metric) {
  ++epoch_;
  if (better(metric)) {
    best_ = metric;
    bad_epochs_ = 0;
  } else {
    ++bad_epochs_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_epochs_ = 0;
  }
  if (bad_epochs_ <= options_.patience) return;
  for (size_t g = 0; g < options_.min_lr.size(); ++g) {
    const double old = optimizer_->lr(g), next = std::max(old * options_.factor, options_.min_lr[g]);
    if (old - next > options_.eps) optimizer_->set_lr(g, next);
  }
  cooldown_left_ = options_.cooldown;
  bad_epochs_ = 0;
}

StateDict ReduceLROnPlateau::state_dict() const {
  StateDict out;
  out.numbers = {{"epoch", real(epoch_)},
                 {"best", best_},
                 {"num_bad_epochs", real(bad_epochs_)},
                 {"cooldown_counter", real(cooldown_left_)}};
  for (size_t g = 0; g < options_.min_lr.size(); ++g) out.numbers.emplace_back(cat("lrs.", g), optimizer_->lr(g));
  return out;
}

void ReduceLROnPlateau::load_state_dict(const StateDict& state) {
  StateReader reader(state, "ReduceLROnPlateau.load_state_dict");
  const int64_t epoch = reader.count("epoch"), bad = reader.count("num_bad_epochs");
  const int64_t cooldown = reader.count("cooldown_counter");
  const double best = reader.number("best");
  std::vector<double> rates;
  for (size_t g = 0; g < options_.min_lr.size(); ++g) rates.push_back(reader.number(cat("lrs.", g)));
  reader.finish();
  epoch_ = epoch;
  bad_epochs_ = bad;
  cooldown_left_ = cooldown;
  best_ = best;
  for (size_t g = 0; g < rates.size(); ++g) optimizer_->set_lr(g, rates[g]);
}

}  // namespace outrace::optim
