// DataLoader: batches of rows, in order or shuffled by a seed; the last batch may be short.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "outrace/graph/tensor.h"

namespace outrace::data {

struct Batch {
  Tensor inputs, labels;
};

struct LoaderOptions {
  int64_t batch_size = 64;
  bool shuffle = false;
  bool drop_last = false;  // leave out a short last batch
  uint64_t seed = 0;       // order of epoch e depends on (seed, e) only
  Device device = {};      // where the batches go
};

class DataLoader {
 public:
  // inputs [N, ...] and labels [N], row-major host data; `rows` picks some of them (a split), empty: all.
  DataLoader(std::vector<float> inputs, const Shape& row_shape, std::vector<int64_t> labels, std::vector<int64_t> rows,
             const LoaderOptions& options = {});

  int64_t rows() const { return static_cast<int64_t>(rows_.size()); }
  int64_t batches() const;          // in one epoch
  void start_epoch(int64_t epoch);  // the next batch is the first of this epoch
  // The next batch, or nothing at the epoch's end. Runs what the thread has recorded first.
  std::optional<Batch> next();

 private:
  std::vector<float> inputs_;
  Shape row_shape_;
  std::vector<int64_t> labels_, rows_, order_;
  LoaderOptions options_;
  int64_t position_ = 0;
};

}  // namespace outrace::data
