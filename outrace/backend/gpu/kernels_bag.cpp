// The parts of embedding_bag.
#include "outrace/backend/gpu/places.h"
#include "outrace/backend/index_errors.h"

namespace outrace::gpu {
namespace {

const char* bag_of_why_not(const Call& call, const Plan& plan, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, 1)) return why;
  return is_index(stored(call.operands[0], plan)) ? nullptr : kIndexTypes;
}

const char* bag_argmax_why_not(const Call& call, const Plan& plan, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, 2)) return why;
  return is_index(stored(call.operands[1], plan)) ? nullptr : kIndexTypes;
}

void launch_bag_check(const KernelText& text, const View& offsets, int64_t bags, int64_t rows, CallBuilder& b) {
  if (bags == 0 && rows == 0) return;
  const Arg number = b.error([bags, rows](int64_t value, int64_t at) {
    return bags == 0 ? no_bags_error(rows) : bag_error(rows, at % bags, value, at / bags);
  });
  b.launch(text, "check_bags", {.groups = {1, 1, 1}},
           {b.array(offsets), b.status_buffer(), number, Arg::i64(bags), Arg::i64(rows)});
}

void make_bag_of(const Call& call, CallBuilder& b) {
  const int64_t bags = call.operand_shapes[0].numel(), rows = call.shape.numel();
  KernelText text("bags.cl");
  text.define("I", stored(call.operands[0], b.plan()));
  launch_bag_check(text, call.operands[0], bags, rows, b);
  b.launch(text, "bag_of", {.groups = {groups_for(rows), 1, 1}},
           {b.array(call.operands[0]), b.whole(call.result), Arg::i64(bags), Arg::i64(rows)});
}

void make_bag_argmax(const Call& call, CallBuilder& b) {
  const int64_t rows = call.operand_shapes[0][0], width = call.operand_shapes[0][1];
  const int64_t bags = call.operand_shapes[1].numel();
  const DType type = stored(call.operands[0], b.plan());
  KernelText text("bags.cl");
  text.define("I", stored(call.operands[1], b.plan())).define("X", type).define("COMPUTE", compute_of(type));
  launch_bag_check(text, call.operands[1], bags, rows, b);
  b.launch(text, "bag_argmax", {.groups = {groups_for(bags * width), 1, 1}},
           {b.array(call.operands[0]), b.array(call.operands[1]), b.whole(call.result), Arg::i64(bags), Arg::i64(rows),
            Arg::i64(width)});
}

const KernelRow kRows[] = {
    {&kBagOf, "bags", bag_of_why_not, make_bag_of},
    {&kBagArgmax, "bags", bag_argmax_why_not, make_bag_argmax},
};

}  // namespace

std::span<const KernelRow> bag_kernels() { return kRows; }

}  // namespace outrace::gpu
