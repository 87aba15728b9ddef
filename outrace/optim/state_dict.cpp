#include "outrace/optim/state_dict.h"

#include "outrace/ops/movement.h"

namespace outrace {

StateReader::StateReader(const StateDict& state, std::string_view who) : who_(who) {
  for (const auto& [name, tensor] : state.tensors)
    if (!tensors_.try_emplace(name, &tensor, false).second) note(cat(name, " (twice)"));
  for (const auto& [name, number] : state.numbers)
    if (!numbers_.try_emplace(name, number, false).second) note(cat(name, " (twice)"));
}

double StateReader::number(const std::string& name) {
  const auto at = numbers_.find(name);
  if (at == numbers_.end()) {
    missing_ += " " + name;
    return 0;
  }
  at->second.second = true;
  return at->second.first;
}

int64_t StateReader::count(const std::string& name) {
  const double v = number(name);
  if (v >= 0 && v <= 0x1p53 && v == std::trunc(v)) return static_cast<int64_t>(v);
  note(cat(name, " (", v, " is no count)"));
  return 0;
}

const Tensor* StateReader::find(const std::string& name, std::optional<DType> exactly) {
  const auto at = tensors_.find(name);
  if (at == tensors_.end()) {
    missing_ += " " + name;
    return nullptr;
  }
  at->second.second = true;
  const Tensor* t = at->second.first;
  if (t->defined() && (exactly ? t->dtype() == *exactly : is_float(t->dtype()))) return t;
  note(cat(name, " (", t->defined() ? name_of(t->dtype()) : "undefined", ", ",
           exactly ? name_of(*exactly) : "floating point", " needed)"));
  return nullptr;
}

Tensor StateReader::tensor(const std::string& name, const Shape& shape, std::optional<DType> exactly) {
  const Tensor* t = find(name, exactly);
  if (!t) return {};
  if (t->shape() == shape) return *t;
  shapes_ += cat(" ", name, " (", t->shape(), " given, ", shape, " needed)");
  return {};
}

Tensor StateReader::stack(const std::string& name, const Shape& entry) {
  const Tensor* t = find(name);
  if (!t) return {};
  bool fits = t->rank() == entry.rank() + 1;
  for (int i = 0; fits && i < entry.rank(); ++i) fits = t->shape()[i + 1] == entry[i];
  if (fits) return *t;
  shapes_ += cat(" ", name, " (", t->shape(), " given, a leading axis over ", entry, " needed)");
  return {};
}

void StateReader::finish() const {
  std::string unexpected;
  for (const auto& [name, entry] : tensors_)
    if (!entry.second) unexpected += " " + name;
  for (const auto& [name, entry] : numbers_)
    if (!entry.second) unexpected += " " + name;
  if (missing_.empty() && unexpected.empty() && shapes_.empty() && faults_.empty()) return;
  fail(ErrorKind::value, "[", who_, "] the state does not fit;", missing_.empty() ? "" : " missing:", missing_,
       unexpected.empty() ? "" : " unexpected:", unexpected, shapes_.empty() ? "" : " wrong shape:", shapes_,
       faults_.empty() ? "" : " wrong value:", faults_);
}

Tensor snapshot(const Tensor& t) {
  const Node& n = t.eval().node();
  return Tensor(make_buffer_node(n.buffer, n.dtype, n.shape, n.byte_offset));
}

void restore(Tensor& to, const Tensor& value, Device device) {
  NoGrad off;
  const Tensor moved = snapshot(to_device(value, device));
  if (!to.defined())
    to = moved;
  else
    to.replace_everywhere(moved);
}

}  // namespace outrace
