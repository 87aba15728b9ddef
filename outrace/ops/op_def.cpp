#include "outrace/ops/op_def.h"

#include "outrace/graph/tensor.h"

namespace outrace {
namespace {
std::vector<const OpDef*>& registry() {
  static auto* list = new std::vector<const OpDef*>;
  return *list;
}
}  // namespace

OpDef::OpDef(const OpFacts& facts) : OpFacts(facts), id(static_cast<int>(registry().size())) {
  registry().push_back(this);
}

const std::vector<const OpDef*>& all_ops() { return registry(); }

}  // namespace outrace
