// What kernels report: numbers of texts. One table a device; texts live as long as the process, as programs are cached.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace outrace::gpu {

class ErrorTexts {
 public:
  using Text = std::function<std::string(int64_t value, int64_t at)>;

  // The number that stands for `text`: 1 and up.
  int add(Text text) {
    texts_.push_back(std::move(text));
    return static_cast<int>(texts_.size());
  }
  std::string text(int number, int64_t value, int64_t at) const {
    return texts_[static_cast<size_t>(number) - 1](value, at);
  }

 private:
  std::vector<Text> texts_;
};

}  // namespace outrace::gpu
