// One row an op: everything the engine knows about it besides its kernels. Elementwise rows are generated from ops.def;
// a structured op's row stands at the end of its family's file.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "outrace/ops/attrs.h"
#include "outrace/ops/elementwise_op.h"

namespace outrace {

class Tensor;

enum class OpKind : uint8_t {
  leaf,         // buffer, scalar or constant
  elementwise,  // a row of ops.def, or cast
  movement,     // reshape, permute, expand, slice, unfold, diagonal: read through strides, no call of its own
  producer,     // has a kernel that hands out tiles: matmul, reductions, row ops, random
  transfer,     // copies to another device
};

enum class Autocast : uint8_t { narrow, wide, follow };

// What derivative() gets: the node's inputs and output, and the upstream gradient.
struct DerivativeArgs {
  std::span<const Tensor> inputs;
  const Tensor& output;
  const Tensor& g;
  const Attrs& attrs;
};

// What is written down about an op.
struct OpFacts {
  const char* name;
  OpKind kind;
  // Gradient of input `which`; null when the op has no derivative.
  Tensor (*derivative)(const DerivativeArgs& args, int which) = nullptr;
  // The op in terms of others, for backends without its kernel, and the reference its kernel is tested against; null:
  // primitive.
  Tensor (*decompose)(std::span<const Tensor> inputs, const Attrs& attrs) = nullptr;
  Autocast autocast = Autocast::follow;
  // Arithmetic operations of one call; null: one an output element. Bytes follow from the plan's views.
  double (*flops)(std::span<const Shape> inputs, const Shape& output, const Attrs& attrs) = nullptr;
  bool may_throw = false;  // checks values when it runs: goes before everything that is overwritten in place
  int ew = -1;             // Ew of an elementwise row
};

struct OpDef : OpFacts {
  explicit OpDef(const OpFacts& facts);  // registers itself
  OpDef(const OpDef&) = delete;
  OpDef& operator=(const OpDef&) = delete;
  const int id;  // position in all_ops()
};

// Every op of the program, in order of registration. Tests, docs/ops.md and kernels' coverage walk this list.
const std::vector<const OpDef*>& all_ops();
const OpDef& op_of(Ew op);

// The structured ops, each defined in the file of its family.
extern const OpDef kBuffer, kScalar, kConstant;                              // graph/node.cpp
extern const OpDef kCast;                                                    // ops/elementwise.cpp
extern const OpDef kMatmul;                                                  // ops/matmul.cpp
extern const OpDef kSum, kMean, kMax, kMin, kProd;                           // ops/reduce.cpp
extern const OpDef kArgMax, kArgMin;                                         // ops/arg_reduce.cpp
extern const OpDef kLogSumExp;                                               // ops/logsumexp.cpp
extern const OpDef kVariance, kHistogram, kBincount;                         // ops/statistics.cpp
extern const OpDef kCumsum, kCumprod, kRecurrence, kCumArgMax, kCumArgMin;   // ops/scan.cpp
extern const OpDef kArgsort, kTopK;                                          // ops/sort.cpp
extern const OpDef kSoftmax, kLogSoftmax, kCrossEntropy, kCrossEntropyGrad;  // ops/loss.cpp
extern const OpDef kLayerNorm, kLayerNormGrad, kLayerNormWeightGrad;         // ops/normalization.cpp
extern const OpDef kBatchMoments, kBatchNormSums, kBatchNorm;                // ops/batch_norm.cpp
extern const OpDef kConv, kConvInputGrad, kConvWeightGrad;                   // ops/conv.cpp
extern const OpDef kMaxPool, kMaxPoolGrad, kMaxPoolPick;                     // ops/pool.cpp
extern const OpDef kAvgPool, kAvgPoolGrad;                                   // ops/pool.cpp
extern const OpDef kReshape, kPermute, kExpand, kSlice, kPad;                // ops/movement.cpp
extern const OpDef kUnfold, kFold, kDiagonal;                                // ops/movement.cpp, ops/diagonal.cpp
extern const OpDef kCat;                                                     // ops/concat.cpp
extern const OpDef kGather, kIndexSelect, kTake, kScatter, kScatterAdd, kIndexAdd, kOneHot;  // ops/index.cpp
extern const OpDef kEmbedding, kBagOf, kBagArgmax;                                           // ops/embedding.cpp
extern const OpDef kRandom;                                                                  // ops/random.cpp
extern const OpDef kTransfer;                                                                // ops/movement.cpp
extern const OpDef kRelayout;                                                                // graph/passes/layout.cpp

}  // namespace outrace
