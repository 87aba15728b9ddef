// Softmax and the losses over the last axis.
#include "outrace/backend/gpu/kernel_rows.h"
#include "outrace/core/error.h"

namespace outrace::gpu {
namespace {

// From this length on a group shares a row.
constexpr int64_t kTeamRow = 64;
// Up to so many short rows, one group makes the loss in one launch: four rounds of an item a row.
constexpr int64_t kSmallBatch = 1024;

KernelText row_text(DType stored_type, int64_t columns) {
  KernelText text("rows.cl");
  text.define("X", stored_type)
      .define("COMPUTE", compute_of(stored_type))
      .define("TEAMS", int64_t{columns >= kTeamRow});
  return text;
}

Grid row_grid(int64_t rows, int64_t columns) {
  return {.groups = {columns >= kTeamRow ? rows : groups_for(rows), 1, 1}, .lanes = columns >= kTeamRow};
}

const char* softmax_why_not(const Call& call, const Plan&, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, 1)) return why;
  if (call.shape.rank() == 0) return "needs an axis";
  return is_float(call.dtype) ? nullptr : "computes floats only";
}

void make_softmax(const Call& call, CallBuilder& b) {
  const int64_t columns = call.shape.back();
  if (call.shape.numel() == 0) return;
  const int64_t rows = call.shape.numel() / columns;
  KernelText text = row_text(call.dtype, columns);
  text.define("LOGARITHM", int64_t{call.op == &kLogSoftmax});
  b.launch(text, "softmax", row_grid(rows, columns),
           {b.array(call.operands[0]), b.whole(call.result), Arg::i64(rows), Arg::i64(columns)});
}

const char* logsumexp_why_not(const Call& call, const Plan&, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, 1)) return why;
  if (call.operand_shapes[0].back() == 0) return "needs something to add up";
  return is_float(call.dtype) ? nullptr : "computes floats only";
}

void make_logsumexp(const Call& call, CallBuilder& b) {
  const int64_t rows = call.shape.numel(), columns = call.operand_shapes[0].back();
  if (rows == 0) return;
  KernelText text = row_text(call.dtype, columns);
  text.define("LOGARITHM", int64_t{1});
  b.launch(text, "logsumexp", row_grid(rows, columns),
           {b.array(call.operands[0]), b.whole(call.result), Arg::i64(rows), Arg::i64(columns)});
}

const char* loss_why_not(const Call& call, const Plan& plan, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, call.op == &kCrossEntropy ? 2 : 3)) return why;
  if (!is_float(stored(call.operands[0], plan))) return "logits are floats";
  if (call.operand_shapes[0].rank() != 2) return "logits are [rows, classes]";
  const DType targets = stored(call.operands[1], plan);
  return targets == DType::i64 || targets == DType::i32 ? nullptr : "targets are class numbers, i64 or i32";
}

Arg target_error(const Call& call, CallBuilder& b) {
  return b.error([op = call.op->name, classes = call.operand_shapes[0][1],
                  ignored = std::get<CrossEntropyAttrs>(call.attrs).ignore_index](int64_t value, int64_t at) {
    return cat("[", op, "] a target must be a class from 0 to ", classes - 1, " (", classes,
               " classes) or ignore_index (", ignored, "); target ", at, " is ", value);
  });
}

KernelText loss_text(const Call& call, const CallBuilder& b) {
  KernelText text = row_text(stored(call.operands[0], b.plan()), call.operand_shapes[0][1]);
  text.define("TARGET", stored(call.operands[1], b.plan()));
  text.define("GRADIENT", int64_t{call.op == &kCrossEntropyGrad});
  text.define("REDUCTION", static_cast<int64_t>(std::get<CrossEntropyAttrs>(call.attrs).reduction));
  return text;
}

void make_loss(const Call& call, CallBuilder& b) {
  const auto& attrs = std::get<CrossEntropyAttrs>(call.attrs);
  const int64_t rows = call.operand_shapes[0][0], columns = call.operand_shapes[0][1];
  const DType type = stored(call.operands[0], b.plan());
  const bool each = attrs.reduction == Reduction::none;
  const Arg targets = b.array(call.operands[1]), ignored = Arg::i64(attrs.ignore_index);
  KernelText text = loss_text(call, b);
  text.define("LOSS", each ? type : compute_of(type));
  if (!each && columns < kTeamRow && rows <= kSmallBatch)
    return b.launch(text, "cross_entropy_small", {.groups = {1, 1, 1}},
                    {b.array(call.operands[0]), targets, b.whole(call.result), b.status_buffer(), target_error(call, b),
                     Arg::i64(rows), Arg::i64(columns), ignored});
  const Arg losses = each ? b.whole(call.result) : b.scratch(rows * size_of(compute_of(type)));
  b.launch(text, "cross_entropy", row_grid(rows, columns),
           {b.array(call.operands[0]), targets, losses, b.status_buffer(), target_error(call, b), Arg::i64(rows),
            Arg::i64(columns), ignored});
  if (!each)
    b.launch(text, "fold_losses", {.groups = {1, 1, 1}},
             {losses, targets, b.whole(call.result), Arg::i64(rows), ignored});
}

void make_loss_gradient(const Call& call, CallBuilder& b) {
  const int64_t rows = call.operand_shapes[0][0], columns = call.operand_shapes[0][1];
  b.launch(loss_text(call, b), "cross_entropy_grad", row_grid(rows, columns),
           {b.array(call.operands[0]), b.array(call.operands[1]), b.array(call.operands[2]), b.whole(call.result),
            b.status_buffer(), target_error(call, b), Arg::i64(rows), Arg::i64(columns),
            Arg::i64(std::get<CrossEntropyAttrs>(call.attrs).ignore_index)});
}

const KernelRow kRows[] = {
    {&kSoftmax, "rows", softmax_why_not, make_softmax},
    {&kLogSoftmax, "rows", softmax_why_not, make_softmax},
    {&kLogSumExp, "rows", logsumexp_why_not, make_logsumexp},
    {&kCrossEntropy, "rows", loss_why_not, make_loss},
    {&kCrossEntropyGrad, "rows", loss_why_not, make_loss_gradient},
};

}  // namespace

std::span<const KernelRow> row_kernels() { return kRows; }

}  // namespace outrace::gpu
