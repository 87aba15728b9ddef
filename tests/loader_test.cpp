// label: unit
// The loader's batches, and the accuracy they are judged by.
#include "outrace/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "outrace/core/error.h"
#include "outrace/data/metrics.h"
#include "outrace/ops/ops.h"

namespace outrace::data {
namespace {

// Row i holds {i, i + 0.5} and has the label 10 * i.
DataLoader numbered(int64_t count, const LoaderOptions& options, std::vector<int64_t> rows = {}) {
  std::vector<float> inputs;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    inputs.insert(inputs.end(), {static_cast<float>(i), static_cast<float>(i) + 0.5f});
    labels.push_back(10 * i);
  }
  return DataLoader(std::move(inputs), {2}, std::move(labels), std::move(rows), options);
}

// The row numbers of an epoch in the order in which they come; checks that inputs and labels belong together.
std::vector<int64_t> read_epoch(DataLoader& loader, int64_t epoch) {
  std::vector<int64_t> seen;
  loader.start_epoch(epoch);
  while (const auto batch = loader.next()) {
    const auto inputs = batch->inputs.to_vector<float>();
    const auto labels = batch->labels.to_vector<int64_t>();
    EXPECT_EQ(inputs.size(), 2 * labels.size());
    for (size_t i = 0; i < labels.size(); ++i) {
      EXPECT_EQ(labels[i], 10 * static_cast<int64_t>(inputs[2 * i]));
      EXPECT_EQ(inputs[2 * i + 1], inputs[2 * i] + 0.5f);
      seen.push_back(labels[i] / 10);
    }
  }
  return seen;
}

std::vector<int64_t> first_numbers(int64_t count) {
  std::vector<int64_t> out(count);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

ErrorKind kind_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorKind::state;
}

TEST(Loader, keeps_the_order_and_ends_with_a_short_batch) {
  DataLoader loader = numbered(10, {.batch_size = 4});
  EXPECT_EQ(loader.rows(), 10);
  EXPECT_EQ(loader.batches(), 3);
  std::vector<int64_t> sizes;
  while (const auto batch = loader.next()) {
    EXPECT_EQ(batch->inputs.shape(), (Shape{batch->labels.size(0), 2}));
    sizes.push_back(batch->labels.size(0));
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{4, 4, 2}));
  EXPECT_FALSE(loader.next().has_value()) << "after the end there is nothing until start_epoch";
  EXPECT_EQ(read_epoch(loader, 0), first_numbers(10));
}

TEST(Loader, drop_last_leaves_out_only_a_short_batch) {
  DataLoader loader = numbered(10, {.batch_size = 4, .drop_last = true});
  EXPECT_EQ(loader.batches(), 2);
  EXPECT_EQ(read_epoch(loader, 0), first_numbers(8));
  DataLoader even = numbered(8, {.batch_size = 4, .drop_last = true});
  EXPECT_EQ(even.batches(), 2);
  EXPECT_EQ(read_epoch(even, 0), first_numbers(8));
}

TEST(Loader, shuffles_by_seed_and_epoch_alone) {
  const LoaderOptions options{.batch_size = 7, .shuffle = true, .seed = 3};
  DataLoader loader = numbered(100, options), same = numbered(100, options);
  const std::vector<int64_t> epoch0 = read_epoch(loader, 0), epoch1 = read_epoch(loader, 1);
  EXPECT_NE(epoch0, first_numbers(100));
  EXPECT_NE(epoch0, epoch1);
  EXPECT_EQ(read_epoch(same, 1), epoch1) << "without having read epoch 0";
  EXPECT_EQ(read_epoch(loader, 0), epoch0);
  LoaderOptions other_options = options;
  other_options.seed = 4;
  DataLoader other = numbered(100, other_options);
  EXPECT_NE(read_epoch(other, 0), epoch0);
  for (std::vector<int64_t> epoch : {epoch0, epoch1}) {
    std::ranges::sort(epoch);
    EXPECT_EQ(epoch, first_numbers(100)) << "each row once";
  }
}

// Each of the 24 orders of 4 rows has probability 1/24: over 2400 epochs the count is 100 with deviation 9.8; 5 of them
// either way pass.
TEST(Loader, every_order_is_equally_likely) {
  DataLoader loader = numbered(4, {.batch_size = 4, .shuffle = true, .seed = 5});
  std::vector<int64_t> counts(256);
  for (int64_t epoch = 0; epoch < 2400; ++epoch) {
    int64_t code = 0;
    for (int64_t row : read_epoch(loader, epoch)) code = code * 4 + row;
    ++counts[code];
  }
  int orders = 0;
  for (int64_t count : counts) {
    if (count == 0) continue;
    ++orders;
    EXPECT_NEAR(static_cast<double>(count), 100, 49);
  }
  EXPECT_EQ(orders, 24);
}

TEST(Loader, reads_only_the_rows_of_its_split) {
  DataLoader loader = numbered(10, {.batch_size = 2}, {7, 1, 4});
  EXPECT_EQ(loader.rows(), 3);
  EXPECT_EQ(read_epoch(loader, 0), (std::vector<int64_t>{7, 1, 4}));
}

TEST(Loader, batches_have_the_rows_shape) {
  DataLoader loader(std::vector<float>(24), {3, 2}, std::vector<int64_t>(4), {}, {.batch_size = 3});
  EXPECT_EQ(loader.next()->inputs.shape(), (Shape{3, 3, 2}));
}

TEST(Loader, next_runs_what_is_recorded) {
  DataLoader loader = numbered(4, {.batch_size = 2});
  const Tensor sum = ones({3}) + 1.5;
  EXPECT_FALSE(sum.computed());
  loader.next();
  EXPECT_TRUE(sum.computed());
  EXPECT_EQ(sum.to_vector<float>(), (std::vector<float>{2.5f, 2.5f, 2.5f}));
}

TEST(Loader, refuses_data_that_does_not_fit) {
  EXPECT_EQ(kind_of([] { DataLoader(std::vector<float>(5), {2}, std::vector<int64_t>(3), {}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] { numbered(3, {.batch_size = 0}); }), ErrorKind::value);
  EXPECT_EQ(kind_of([] { numbered(3, {}, {0, 3}); }), ErrorKind::value);
  EXPECT_EQ(kind_of([] { numbered(3, {}, {-1}); }), ErrorKind::value);
  EXPECT_EQ(kind_of([] { numbered(3, {}).start_epoch(-1); }), ErrorKind::value);
}

TEST(Accuracy, counts_rows_whose_largest_value_is_the_label) {
  const float nan = std::nanf("");
  const Tensor logits = Tensor::from<float>({1, 2, 0, /**/ 5, 5, 1, /**/ 0, 0, 9, /**/ nan, 1, 0}, {4, 3});
  EXPECT_EQ(accuracy(logits, Tensor::from<int64_t>({1, 0, 0, 0}, {4})), 0.5);
  EXPECT_EQ(count_correct(logits, Tensor::from<int64_t>({1, 1, 2, 1}, {4})), 2) << "of equal values the first counts";
  EXPECT_EQ(kind_of([&] { accuracy(logits, Tensor::from<int64_t>({1, 2}, {2})); }), ErrorKind::shape);
}

}  // namespace
}  // namespace outrace::data
