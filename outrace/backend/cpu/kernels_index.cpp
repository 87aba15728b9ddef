// The ops that take indices, and cat, as calls of a plan.
#include "outrace/backend/cpu/concat.h"
#include "outrace/backend/cpu/index.h"
#include "outrace/backend/cpu/kernel_rows.h"

namespace outrace::cpu {
namespace {

bool is_index(DType t) { return t == DType::i64 || t == DType::i32; }
constexpr const char* kIndexTypes = "indices are i64 or i32";

// ---- array, index -> elements ----

const char* read_why_not(const Call& call, const Plan& plan) {
  if (const char* why = whole_why_not(call, 2)) return why;
  return is_index(stored(call.operands[1], plan)) ? nullptr : kIndexTypes;
}

class ReadCall final : public ResolvedCall {
 public:
  ReadCall(const Call& call, const Plan& plan)
      : kernel_(call.op == &kGather ? gather : index_select),
        index_call_{.op = call.op->name,
                    .dtype = call.dtype,
                    .index_dtype = stored(call.operands[1], plan),
                    .array = call.operand_shapes[0],
                    .index = call.operand_shapes[1],
                    .attrs = std::get<IndexAttrs>(call.attrs)},
        array_(Place::of(call.operands[0], plan)),
        index_(Place::of(call.operands[1], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override { kernel_(index_call_, array_.at(f), index_.at(f), result_.at(f)); }

 private:
  void (*kernel_)(const IndexCall&, const void*, const void*, void*);
  IndexCall index_call_;
  Place array_, index_, result_;
};

// ---- index, source, perhaps a base -> array ----

const char* write_why_not(const Call& call, const Plan& plan) {
  if (const char* why = whole_why_not(call, call.operands.size() == 3 ? 3 : 2)) return why;
  return is_index(stored(call.operands[0], plan)) ? nullptr : kIndexTypes;
}

class WriteCall final : public ResolvedCall {
 public:
  WriteCall(const Call& call, const Plan& plan)
      : kernel_(call.op == &kScatter      ? scatter
                : call.op == &kScatterAdd ? scatter_add
                                          : index_add),
        index_call_{.op = call.op->name,
                    .dtype = call.dtype,
                    .index_dtype = stored(call.operands[0], plan),
                    .array = call.shape,
                    .index = call.operand_shapes[0],
                    .attrs = std::get<IndexAttrs>(call.attrs)},
        index_(Place::of(call.operands[0], plan)),
        source_(Place::of(call.operands[1], plan)),
        result_{call.result, 0} {
    if (call.operands.size() == 3) base_ = Place::of(call.operands[2], plan);
  }
  void run(const Frame& f) override { kernel_(index_call_, index_.at(f), source_.at(f), base_.at(f), result_.at(f)); }

 private:
  void (*kernel_)(const IndexCall&, const void*, const void*, const void*, void*);
  IndexCall index_call_;
  Place index_, source_, base_, result_;
};

const char* one_index_why_not(const Call& call, const Plan& plan) {
  if (const char* why = whole_why_not(call, 1)) return why;
  return is_index(stored(call.operands[0], plan)) ? nullptr : kIndexTypes;
}

class OneHotCall final : public ResolvedCall {
 public:
  OneHotCall(const Call& call, const Plan& plan)
      : index_call_{.op = call.op->name,
                    .dtype = call.dtype,
                    .index_dtype = stored(call.operands[0], plan),
                    .array = call.shape,
                    .index = call.operand_shapes[0],
                    .attrs = std::get<IndexAttrs>(call.attrs)},
        index_(Place::of(call.operands[0], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override { one_hot(index_call_, index_.at(f), result_.at(f)); }

 private:
  IndexCall index_call_;
  Place index_, result_;
};

class BagOfCall final : public ResolvedCall {
 public:
  BagOfCall(const Call& call, const Plan& plan)
      : dtype_(stored(call.operands[0], plan)),
        bags_(call.operand_shapes[0].numel()),
        rows_(call.shape.numel()),
        offsets_(Place::of(call.operands[0], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override {
    bag_of(dtype_, offsets_.at(f), bags_, static_cast<int64_t*>(result_.at(f)), rows_);
  }

 private:
  DType dtype_;
  int64_t bags_, rows_;
  Place offsets_, result_;
};

class BagArgmaxCall final : public ResolvedCall {
 public:
  BagArgmaxCall(const Call& call, const Plan& plan)
      : row_dtype_(stored(call.operands[0], plan)),
        dtype_(stored(call.operands[1], plan)),
        rows_(call.operand_shapes[0][0]),
        width_(call.operand_shapes[0][1]),
        bags_(call.operand_shapes[1].numel()),
        x_(Place::of(call.operands[0], plan)),
        offsets_(Place::of(call.operands[1], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override {
    bag_argmax(row_dtype_, x_.at(f), rows_, width_, dtype_, offsets_.at(f), bags_,
               static_cast<int64_t*>(result_.at(f)));
  }

 private:
  DType row_dtype_, dtype_;
  int64_t rows_, width_, bags_;
  Place x_, offsets_, result_;
};

// ---- cat ----

const char* cat_why_not(const Call& call, const Plan&) { return whole_why_not(call, call.operands.size()); }

class CatCall final : public ResolvedCall {
 public:
  CatCall(const Call& call, const Plan& plan) : result_{call.result, 0} {
    const int axis = static_cast<int>(std::get<ConcatAttrs>(call.attrs).axis);
    const int64_t element = size_of(call.dtype);
    for (int i = 0; i < axis; ++i) rows_ *= call.shape[i];
    for (size_t k = 0; k < call.operands.size(); ++k) {
      const Shape& s = call.operand_shapes[k];
      CatPart part{nullptr, element, 0};
      for (int i = axis; i < s.rank(); ++i) part.bytes *= s[i];
      // The passes made sure that one stride walks all axes before this one.
      for (int i = axis - 1; i >= 0 && part.row_step == 0; --i)
        if (s[i] != 1) {
          part.row_step = call.operands[k].strides[i] * element;
          break;
        }
      parts_.push_back(part);
      places_.push_back(Place::of(call.operands[k], plan));
    }
  }
  void run(const Frame& f) override {
    for (size_t k = 0; k < parts_.size(); ++k) parts_[k].data = static_cast<const char*>(places_[k].at(f));
    concat(parts_, rows_, result_.at(f));
  }

 private:
  int64_t rows_ = 1;
  std::vector<CatPart> parts_;
  std::vector<Place> places_;
  Place result_;
};

const KernelRow kRows[] = {
    {&kGather, "elements", read_why_not, make<ReadCall>},
    {&kIndexSelect, "rows", read_why_not, make<ReadCall>},
    {&kTake, "rows", read_why_not, make<ReadCall>},
    {&kEmbedding, "rows", read_why_not, make<ReadCall>},
    {&kScatter, "elements", write_why_not, make<WriteCall>},
    {&kScatterAdd, "elements", write_why_not, make<WriteCall>},
    {&kIndexAdd, "sorted_rows", write_why_not, make<WriteCall>},
    {&kOneHot, "rows", one_index_why_not, make<OneHotCall>},
    {&kBagOf, "bags", one_index_why_not, make<BagOfCall>},
    {&kBagArgmax, "bags", read_why_not, make<BagArgmaxCall>},
    {&kCat, "pieces", cat_why_not, make<CatCall>},
};

}  // namespace

std::span<const KernelRow> index_kernels() { return kRows; }

}  // namespace outrace::cpu
