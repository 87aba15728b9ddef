// Reads the embedded copy of data/digits/digits.bin: 1797 records of 64 pixels (0..16) and one label.
#include "outrace/data/digits.h"

#include <cmath>
#include <numeric>
#include <span>

#include "outrace/core/error.h"
#include "outrace/core/random.h"

namespace outrace {

namespace embedded {
extern const std::span<const uint8_t> digits_bin;
}

namespace {

constexpr int64_t kRecord = Digits::kPixels + 1;
constexpr float kFullInk = 16;  // a pixel counts the inked dots of a 4 x 4 block

Digits unpack(std::span<const uint8_t> bytes) {
  OUTRACE_ASSERT(bytes.size() % kRecord == 0, "digits.bin has ", bytes.size(), " bytes");
  Digits digits;
  digits.count = static_cast<int64_t>(bytes.size()) / kRecord;
  digits.images.reserve(digits.count * Digits::kPixels);
  digits.labels.reserve(digits.count);
  for (; !bytes.empty(); bytes = bytes.subspan(kRecord)) {
    for (uint8_t pixel : bytes.first(Digits::kPixels)) digits.images.push_back(pixel / kFullInk);
    digits.labels.push_back(bytes[Digits::kPixels]);
  }
  return digits;
}

}  // namespace

const Digits& load_digits() {
  static const Digits digits = unpack(embedded::digits_bin);
  return digits;
}

Split split_indices(int64_t count, double test_share, uint64_t seed) {
  if (count < 0) fail(ErrorKind::value, "[split_indices] count must not be negative; got ", count);
  if (!(test_share >= 0 && test_share <= 1))
    fail(ErrorKind::value, "[split_indices] test_share must lie in 0..1; got ", test_share);

  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t last = count - 1; last > 0; --last)  // Fisher-Yates
    std::swap(order[last], order[integer_i64({.seed = seed}, last, 0, last + 1)]);

  const auto cut = order.begin() + std::llround(static_cast<double>(count) * test_share);
  return {.train = {cut, order.end()}, .test = {order.begin(), cut}};
}

}  // namespace outrace
