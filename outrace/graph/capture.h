// capture(fn): records a step once and replays it. A call costs the rebinding of its arguments; other shapes, dtypes,
// devices or training flags record anew.
#pragma once
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "outrace/core/function_ref.h"
#include "outrace/graph/tensor.h"

namespace outrace {

class CapturedStep {
 public:
  CapturedStep();
  ~CapturedStep();
  CapturedStep(CapturedStep&&) noexcept;
  // Runs the step that `record` describes on `args`. `record` is called only when no recording fits.
  std::vector<Tensor> run(std::span<const Tensor> args,
                          FunctionRef<std::vector<Tensor>(std::span<const Tensor>)> record);

 private:
  struct Recording;
  std::vector<std::unique_ptr<Recording>> recordings_;
};

// fn(Tensor...) -> Tensor, std::vector<Tensor> or nothing. What it reads besides its arguments: parameters, buffers of
// modules and optimizer state by their current values, other tensors and numbers as they were when it was recorded. It
// must not ask for values.
template <class Fn>
class Captured {
 public:
  explicit Captured(Fn fn) : fn_(std::move(fn)) {}

  template <class... Tensors>
  auto operator()(const Tensors&... args) {
    using Result = std::invoke_result_t<Fn&, const Tensors&...>;
    const std::array<Tensor, sizeof...(args)> given{args...};
    std::vector<Tensor> out = step_.run(
        given, [&](std::span<const Tensor> a) { return call<Result>(a, std::index_sequence_for<Tensors...>{}); });
    if constexpr (std::is_same_v<Result, Tensor>)
      return std::move(out[0]);
    else if constexpr (!std::is_void_v<Result>)
      return out;
  }

 private:
  template <class Result, size_t... I>
  std::vector<Tensor> call(std::span<const Tensor> a, std::index_sequence<I...>) {
    if constexpr (std::is_void_v<Result>) {
      fn_(a[I]...);
      return {};
    } else if constexpr (std::is_same_v<Result, Tensor>) {
      return {fn_(a[I]...)};
    } else {
      return fn_(a[I]...);
    }
  }
  Fn fn_;
  CapturedStep step_;
};

template <class Fn>
Captured<Fn> capture(Fn fn) {
  return Captured<Fn>(std::move(fn));
}

}  // namespace outrace
