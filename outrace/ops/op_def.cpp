#include "outrace/ops/op_def.h"

#include "outrace/graph/tensor.h"

namespace outrace {
namespace {
std::vector<const OpDef*>& registry() {
  static auto* list = new std::vector<const OpDef*>;
  return *list;
}
}  // namespace

OpDef::OpDef(const Init& init)
    : name(init.name),
      kind(init.kind),
      derivative(init.derivative),
      decompose(init.decompose),
      autocast(init.autocast),
      flops(init.flops),
      may_throw(init.may_throw),
      ew(init.ew),
      id(static_cast<int>(registry().size())) {
  registry().push_back(this);
}

const std::vector<const OpDef*>& all_ops() { return registry(); }

}  // namespace outrace
