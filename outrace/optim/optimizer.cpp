#include "outrace/optim/optimizer.h"

#include "outrace/graph/flush.h"
#include "outrace/ops/creation.h"
#include "outrace/ops/elementwise.h"

namespace outrace::optim {
namespace {

DType arithmetic_type(const Tensor& p) { return p.dtype() == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace

Optimizer::Optimizer(std::string_view name, const ParameterGroups& parameters, const Group& defaults,
                     const Rules& rules)
    : name_(name), rules_(rules) {
  size_t next = 0;
  const auto all = checked_parameters(parameters, name);
  for (const ParameterGroup& given : parameters.groups) {
    Group g = defaults;
    g.lr = given.lr.value_or(g.lr);
    g.weight_decay = given.weight_decay.value_or(g.weight_decay);
    if (given.momentum) {
      require(!std::isnan(defaults.momentum), "the group's momentum needs an optimizer that has one", *given.momentum);
      g.momentum = *given.momentum;
    }
    g.state_dtype = given.state_dtype;
    if (g.state_dtype && !is_float(*g.state_dtype))
      fail(ErrorKind::dtype, "[", name_, "] state_dtype must be floating point; got ", name_of(*g.state_dtype));
    require(g.lr >= 0, "lr must not be negative", g.lr);
    require(g.weight_decay >= 0, "weight_decay must not be negative", g.weight_decay);
    require(!(g.momentum < 0), "momentum (beta1) must not be negative", g.momentum);
    for (size_t i = 0; i < given.parameters.entries.size(); ++i, ++next)
      entries_.push_back({all[next].second, all[next].first, groups_.size()});
    groups_.push_back(g);
  }
}

void Optimizer::require(bool holds, std::string_view what, double got) const {
  if (!holds) fail(ErrorKind::value, "[", name_, "] ", what, "; got ", got);
}

void Optimizer::zero_grad() {
  for (Entry& e : entries_) e.parameter.zero_grad();
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> out;
  for (const Entry& e : entries_) out.push_back(e.parameter);
  return out;
}

void Optimizer::set_lr(double lr) {
  for (Group& g : groups_) g.lr = lr;
}

void Optimizer::set_momentum(size_t group, double momentum) {
  Group& g = groups_.at(group);
  require(!std::isnan(g.momentum), "has no momentum to set", momentum);
  require((g.momentum == 0) == (momentum == 0), "a momentum of 0 stays, and no other becomes 0", momentum);
  g.momentum = momentum;
}

void Optimizer::advance(const std::vector<size_t>& updated) {
  ++steps_;
  ++run_;
  for (size_t i : updated) ++entries_[i].updates;
}

void Optimizer::step_back(const std::vector<size_t>& updated) {
  --steps_;
  for (size_t i : updated) --entries_[i].updates;
}

void Optimizer::fill(NumberSet& set, const Group& group, int64_t updates) const {
  const std::vector<double> all = numbers(group, updates);
  set.values.resize(all.size() + 1);
  for (size_t i = 0; i < all.size(); ++i) set.values[i].set(all[i]);
  set.values.back().set(rules_.decoupled_decay ? 1 - group.lr * group.weight_decay : group.weight_decay);
  set.set_in = run_;
}

// The sets that this step's parameters read, filled; those of no further use go.
Optimizer::Used Optimizer::number_sets(const std::vector<size_t>& updated) {
  std::map<std::pair<size_t, int64_t>, size_t> place;
  Used used;
  for (size_t i : updated) {
    const Entry& e = entries_[i];
    const std::pair key{e.group, steps_ - e.updates};
    const auto [at, fresh] = place.try_emplace(key, used.size());
    if (fresh) {
      auto& set = numbers_[key];
      if (!set) set = std::make_shared<NumberSet>();
      fill(*set, groups_[e.group], e.updates);
      used.emplace_back(set, std::vector<size_t>{});
    }
    used[at->second].second.push_back(i);
  }
  std::erase_if(numbers_, [&](const auto& entry) { return entry.second->set_in != run_; });
  return used;
}

void Optimizer::check_replay(const Used& used) const {
  for (const auto& [set, members] : used)
    for (size_t i : members)
      if (entries_[i].updates != entries_[members[0]].updates)
        fail(ErrorKind::state, "[capture] ", entries_[i].name, " and ", entries_[members[0]].name,
             " have had different numbers of updates since this step was captured; capture it anew");
}

void Optimizer::replay(const std::vector<size_t>& updated, const Used& used) {
  advance(updated);
  for (const auto& [set, members] : used) {
    const Entry& first = entries_[members[0]];
    fill(*set, groups_[first.group], first.updates);
  }
}

void Optimizer::record_update(Entry& e, const Tensor& gradient, NumberSet& set) {
  const Group& group = groups_[e.group];
  const DType type = arithmetic_type(e.parameter);
  if (e.state.empty()) {
    const CreateOptions options{group.state_dtype.value_or(type), e.parameter.device()};
    for (size_t i = 0; i < state_names().size(); ++i)
      e.state.push_back(full(e.parameter.shape(), initial_state(), options));
  }
  Tensor p = cast(e.parameter, type), g = cast(gradient, type);
  const Numbers n(set.values, p);
  if (rules_.maximize) g = -g;
  if (group.weight_decay != 0) {
    const Tensor& decay = n[set.values.size() - 1];
    if (rules_.decoupled_decay)
      p = p * decay;
    else
      g = g + p * decay;
  }
  std::vector<Tensor> state;
  for (const Tensor& s : e.state) state.push_back(cast(s, type));
  Tensor next = update(p, g, state, n);
  p = g = Tensor();  // so that the values below have no second handle and can be taken over
  const auto give = [](Tensor& to, Tensor&& value) {
    if (value.dtype() == to.dtype())
      to.assign(std::move(value));
    else
      to.assign(cast(value, to.dtype()));
  };
  give(e.parameter, std::move(next));
  for (size_t i = 0; i < state.size(); ++i) give(e.state[i], std::move(state[i]));
}

void Optimizer::step(const StepOptions& options, std::source_location where) {
  NoGrad off;
  Recorder& recorder = Recorder::current();
  std::vector<size_t> updated;
  for (size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].parameter.slot().grad) updated.push_back(i);
  advance(updated);
  const Used used = number_sets(updated);
  if (recorder.capture) {
    // What may refuse comes before all that counts.
    auto& on_replay = recorder.capture->on_replay;
    on_replay.insert(on_replay.begin(), [this, used, alive = std::weak_ptr<bool>(alive_)] {
      if (alive.expired()) fail(ErrorKind::state, "[capture] the optimizer of this captured step was destroyed");
      check_replay(used);
    });
    on_replay.push_back([this, updated, used] { replay(updated, used); });
    recorder.capture->on_failure.push_back([this, updated] { step_back(updated); });
  }
  std::vector<NumberSet*> set_of(entries_.size());
  for (const auto& [set, members] : used)
    for (size_t i : members) set_of[i] = set.get();
  std::vector<Tensor> kept;
  const auto record_all = [&] {
    for (size_t i : updated) {
      Entry& e = entries_[i];
      Slot& slot = e.parameter.slot();
      const Tensor g(slot.grad);
      record_update(e, g, *set_of[i]);
      if (options.keep_grads) {
        kept.push_back(g);
        continue;
      }
      slot.grad.reset();
      slot.grad_state = GradState::consumed;
    }
  };
  if (recorder.capture) return record_all();
  try {
    record_all();
    recorder.flush(where);
  } catch (...) {
    // Updates that were recorded before the fault and have not run.
    std::vector<NodePtr> pending;
    const auto note = [&](const Tensor& t) {
      if (t.defined() && !t.node().is_leaf()) pending.push_back(t.node_ptr());
    };
    for (size_t i : updated) {
      note(entries_[i].parameter);
      for (const Tensor& t : entries_[i].state) note(t);
    }
    roll_back(recorder, pending);
    step_back(updated);
    throw;
  }
}

StateDict Optimizer::state_dict() const {
  StateDict out;
  const std::vector<std::string> names = state_names();
  for (const Entry& e : entries_) {
    out.numbers.emplace_back("state." + e.name + ".step", static_cast<double>(e.updates));
    if (e.updates == 0) continue;
    for (size_t k = 0; k < e.state.size(); ++k)
      out.tensors.emplace_back("state." + e.name + "." + names[k], snapshot(e.state[k]));
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    out.numbers.emplace_back(cat("param_groups.", g, ".lr"), groups_[g].lr);
    if (!std::isnan(groups_[g].momentum))
      out.numbers.emplace_back(cat("param_groups.", g, ".momentum"), groups_[g].momentum);
  }
  out.numbers.emplace_back("steps", static_cast<double>(steps_));
  return out;
}

void Optimizer::load_state_dict(const StateDict& state) {
  StateReader reader(state, cat(name_, ".load_state_dict"));
  const std::vector<std::string> names = state_names();
  const int64_t steps = reader.count("steps");
  std::vector<Group> groups = groups_;
  for (size_t g = 0; g < groups.size(); ++g) {
    groups[g].lr = reader.number(cat("param_groups.", g, ".lr"));
    if (std::isnan(groups[g].momentum)) continue;
    const std::string name = cat("param_groups.", g, ".momentum");
    groups[g].momentum = reader.number(name);
    if ((groups[g].momentum == 0) != (groups_[g].momentum == 0))
      reader.note(cat(name, " (", groups[g].momentum, " for ", groups_[g].momentum, ")"));
  }
  std::vector<int64_t> updates;
  std::vector<std::vector<Tensor>> tensors;
  for (const Entry& e : entries_) {
    updates.push_back(reader.count("state." + e.name + ".step"));
    if (updates.back() > steps) reader.note(cat("state.", e.name, ".step (more than steps)"));
    tensors.emplace_back();
    if (updates.back() == 0) continue;
    for (const std::string& name : names)
      tensors.back().push_back(reader.tensor("state." + e.name + "." + name, e.parameter.shape()));
  }
  reader.finish();
  groups_ = groups;
  steps_ = steps;
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& e = entries_[i];
    e.updates = updates[i];
    const Device device = e.parameter.device();
    if (!tensors[i].empty()) e.state.resize(names.size());
    for (size_t k = 0; k < e.state.size(); ++k)
      restore(
          e.state[k],
          tensors[i].empty() ? full(e.parameter.shape(), initial_state(), {e.state[k].dtype(), device}) : tensors[i][k],
          device);
  }
}

}  // namespace outrace::optim
