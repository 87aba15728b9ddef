#include "outrace/data/loader.h"

#include <algorithm>
#include <numeric>

#include "outrace/core/error.h"
#include "outrace/core/random.h"
#include "outrace/graph/recorder.h"

namespace outrace::data {
namespace {

// Serials of random tensors and of split_indices count from 0; epochs have the upper half for themselves, so that equal
// seeds do not make equal draws.
constexpr uint64_t kFirstSerial = uint64_t{1} << 63;

void shuffle(std::vector<int64_t>& order, uint64_t seed, int64_t epoch) {
  const RandomState state{.seed = seed, .serial = kFirstSerial + static_cast<uint64_t>(epoch)};
  for (int64_t last = static_cast<int64_t>(order.size()) - 1; last > 0; --last)  // Fisher-Yates
    std::swap(order[last], order[integer_i64(state, last, 0, last + 1)]);
}

}  // namespace

DataLoader::DataLoader(std::vector<float> inputs, const Shape& row_shape, std::vector<int64_t> labels,
                       std::vector<int64_t> rows, const LoaderOptions& options)
    : inputs_(std::move(inputs)),
      row_shape_(row_shape),
      labels_(std::move(labels)),
      rows_(std::move(rows)),
      options_(options) {
  const int64_t count = static_cast<int64_t>(labels_.size());
  if (options.batch_size < 1)
    fail(ErrorKind::value, "[DataLoader] batch_size must be positive; got ", options.batch_size);
  if (static_cast<int64_t>(inputs_.size()) != count * row_shape.numel())
    fail(ErrorKind::shape, "[DataLoader] ", inputs_.size(), " input values are not ", count,
         " rows (one a label) of shape ", row_shape);
  for (int64_t row : rows_)
    if (row < 0 || row >= count)
      fail(ErrorKind::value, "[DataLoader] row ", row, " is asked for, but there are rows 0 to ", count - 1);
  if (rows_.empty()) {
    rows_.resize(count);
    std::iota(rows_.begin(), rows_.end(), 0);
  }
  start_epoch(0);
}

int64_t DataLoader::batches() const {
  return (rows() + (options_.drop_last ? 0 : options_.batch_size - 1)) / options_.batch_size;
}

void DataLoader::start_epoch(int64_t epoch) {
  if (epoch < 0) fail(ErrorKind::value, "[DataLoader] epochs count from 0; got ", epoch);
  order_ = rows_;
  if (options_.shuffle) shuffle(order_, options_.seed, epoch);
  position_ = 0;
}

std::optional<Batch> DataLoader::next() {
  // A loop that keeps a running sum of its losses and never asks for a value must not gather work for ever.
  Recorder::current().flush();
  const int64_t size = std::min(options_.batch_size, rows() - position_), width = row_shape_.numel();
  if (size <= 0 || (options_.drop_last && size < options_.batch_size)) return std::nullopt;

  std::vector<float> inputs(size * width);  // [size, width]
  std::vector<int64_t> labels(size);
  for (int64_t i = 0; i < size; ++i) {
    const int64_t row = order_[position_ + i];
    std::copy_n(inputs_.begin() + row * width, width, inputs.begin() + i * width);
    labels[i] = labels_[row];
  }
  position_ += size;
  return Batch{.inputs = Tensor::from(inputs, row_shape_.inserted(0, size), options_.device),
               .labels = Tensor::from(labels, {size}, options_.device)};
}

}  // namespace outrace::data
