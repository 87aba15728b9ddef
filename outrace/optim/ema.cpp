#include "outrace/optim/ema.h"

#include <algorithm>

#include "outrace/nn/module.h"
#include "outrace/ops/elementwise.h"

namespace outrace::optim {
namespace {

DType average_type(const Tensor& t) { return is_float(t.dtype()) && t.dtype() != DType::f64 ? DType::f32 : t.dtype(); }

}  // namespace

Ema::Ema(const nn::Module& module, const EmaOptions& options) : options_(options) {
  if (!(options.decay >= 0 && options.decay <= 1))
    fail(ErrorKind::value, "[Ema] decay must be in [0, 1]; got ", options.decay);
  NoGrad off;
  const std::vector<Tensor> parameters = module.parameters();
  std::vector<const Slot*> seen;
  for (const auto& [name, tensor] : module.state_dict()) {
    if (std::find(seen.begin(), seen.end(), &tensor.slot()) != seen.end()) continue;  // tied: averaged once
    seen.push_back(&tensor.slot());
    const bool buffer = std::none_of(parameters.begin(), parameters.end(),
                                     [&, &t = tensor](const Tensor& p) { return &p.slot() == &t.slot(); });
    if (buffer && options.buffers == EmaBuffers::keep) continue;
    const bool copies = buffer && (options.buffers == EmaBuffers::copy || !is_float(tensor.dtype()));
    const Tensor wide = copies ? tensor : cast(tensor, average_type(tensor));
    entries_.push_back({name, tensor, snapshot(wide), copies});
  }
}

void Ema::advance() {
  ++updates_;
  const auto t = static_cast<double>(updates_);
  rate_.set(1 - (options_.warm_up ? std::min(options_.decay, (1 + t) / (10 + t)) : options_.decay));
}

void Ema::update(std::source_location where) {
  if (applied_) fail(ErrorKind::state, "[Ema] update() between apply() and restore() would average the averages");
  NoGrad off;
  Recorder& recorder = Recorder::current();
  advance();
  if (recorder.capture) {
    // What may refuse comes before all that counts.
    auto& on_replay = recorder.capture->on_replay;
    on_replay.insert(on_replay.begin(), [this, alive = std::weak_ptr<bool>(alive_)] {
      if (alive.expired()) fail(ErrorKind::state, "[capture] the average of this captured step was destroyed");
      if (applied_) fail(ErrorKind::state, "[Ema] a captured update() ran between apply() and restore()");
    });
    on_replay.push_back([this] { advance(); });
    recorder.capture->on_failure.push_back([this] { --updates_; });
  }
  if (recorder.capture) return record_averages();
  try {
    record_averages();
    recorder.flush(where);
  } catch (...) {
    --updates_;
    throw;
  }
}

void Ema::record_averages() {
  for (Entry& e : entries_) {
    if (e.copies) {
      e.average.assign(e.source);
      continue;
    }
    const Tensor now = cast(e.source, e.average.dtype());
    e.average.assign(e.average + (now - e.average) * rate_.like(e.average));
  }
}

void Ema::apply() {
  if (applied_) fail(ErrorKind::state, "[Ema] apply() twice without restore()");
  NoGrad off;
  std::vector<Tensor> values;  // first all that can fail
  for (Entry& e : entries_) {
    e.set_aside = snapshot(e.source);
    values.push_back(snapshot(cast(e.average, e.source.dtype())));
  }
  for (size_t i = 0; i < entries_.size(); ++i) entries_[i].source.assign(values[i]);
  applied_ = true;
}

void Ema::restore() {
  if (!applied_) fail(ErrorKind::state, "[Ema] restore() without apply()");
  NoGrad off;
  for (Entry& e : entries_) {
    e.source.assign(e.set_aside);
    e.set_aside = Tensor();
  }
  applied_ = false;
}

void Ema::copy_to(nn::Module& module) const {
  NoGrad off;
  nn::NamedTensors state = module.state_dict();
  std::string unknown;
  for (const Entry& e : entries_) {
    const auto at = std::find_if(state.begin(), state.end(), [&](const auto& s) { return s.first == e.name; });
    if (at == state.end())
      unknown += " " + e.name;
    else
      at->second = e.average;
  }
  if (!unknown.empty()) fail(ErrorKind::value, "[Ema.copy_to] the module has no", unknown);
  module.load_state_dict(state);
}

StateDict Ema::state_dict() const {
  StateDict out;
  for (const Entry& e : entries_) out.tensors.emplace_back("average." + e.name, snapshot(e.average));
  out.numbers.emplace_back("updates", static_cast<double>(updates_));
  return out;
}

void Ema::load_state_dict(const StateDict& state) {
  StateReader reader(state, "Ema.load_state_dict");
  const int64_t updates = reader.count("updates");
  std::vector<Tensor> values;
  for (const Entry& e : entries_) {
    const DType t = e.average.dtype();
    values.push_back(
        reader.tensor("average." + e.name, e.average.shape(), is_float(t) ? std::nullopt : std::optional(t)));
  }
  reader.finish();
  updates_ = updates;
  for (size_t i = 0; i < entries_.size(); ++i)
    outrace::restore(entries_[i].average, values[i], entries_[i].source.device());
}

}  // namespace outrace::optim
