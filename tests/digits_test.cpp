// label: unit
// The digits that come with the library, and the cut into training and test part.
#include "outrace/data/digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "outrace/core/error.h"

namespace outrace {
namespace {

TEST(Digits, hold_the_published_counts) {
  const Digits& digits = load_digits();
  EXPECT_EQ(digits.count, 1797);
  ASSERT_EQ(digits.images.size(), 1797u * 64);
  ASSERT_EQ(digits.labels.size(), 1797u);
  std::vector<int64_t> per_class(10);
  for (int64_t label : digits.labels) ++per_class.at(label);
  EXPECT_EQ(per_class, (std::vector<int64_t>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}));
}

TEST(Digits, pixels_are_sixteenths_from_0_to_1) {
  const Digits& digits = load_digits();
  double ink = 0;
  for (float pixel : digits.images) {
    ASSERT_TRUE(pixel >= 0 && pixel <= 1) << pixel;
    ink += pixel * 16;
  }
  EXPECT_EQ(ink, 561718);
}

TEST(Digits, first_and_last_sample_are_the_files) {
  const Digits& digits = load_digits();
  const std::vector<float> first_rows = {0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0};
  for (size_t i = 0; i < first_rows.size(); ++i) EXPECT_EQ(digits.images[i] * 16, first_rows[i]) << i;
  EXPECT_EQ(digits.labels.front(), 0);
  EXPECT_EQ(digits.labels.back(), 8);
}

TEST(Split, is_a_permutation_cut_in_two) {
  const Split split = split_indices(1797, 0.2, 1);
  EXPECT_EQ(split.test.size(), 359u);  // round(359.4)
  EXPECT_EQ(split.train.size(), 1438u);
  std::vector<int64_t> all = split.train;
  all.insert(all.end(), split.test.begin(), split.test.end());
  EXPECT_FALSE(std::is_sorted(all.begin(), all.end()));
  std::sort(all.begin(), all.end());
  std::vector<int64_t> expected(1797);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(Split, depends_on_the_seed_alone) {
  EXPECT_EQ(split_indices(100, 0.3, 7).train, split_indices(100, 0.3, 7).train);
  EXPECT_NE(split_indices(100, 0.3, 7).train, split_indices(100, 0.3, 8).train);
}

// Each sample must be as likely as any other to be a test sample: over 4000 seeds, 2 of 10 give 800 expected, with a
// standard deviation of 25.3.
TEST(Split, is_fair) {
  std::vector<int> chosen(10);
  for (uint64_t seed = 0; seed < 4000; ++seed)
    for (int64_t sample : split_indices(10, 0.2, seed).test) ++chosen[sample];
  for (int count : chosen) EXPECT_NEAR(count, 800, 5 * 25.3);
}

TEST(Split, of_nothing_and_of_all) {
  EXPECT_TRUE(split_indices(0, 0.5, 1).train.empty());
  EXPECT_EQ(split_indices(5, 0, 1).train.size(), 5u);
  EXPECT_EQ(split_indices(5, 1, 1).test.size(), 5u);
}

TEST(Split, refuses_a_share_outside_0_to_1) {
  EXPECT_THROW(split_indices(5, 1.5, 1), Error);
  EXPECT_THROW(split_indices(5, -0.1, 1), Error);
  EXPECT_THROW(split_indices(-1, 0.5, 1), Error);
}

}  // namespace
}  // namespace outrace
