// Tensors from nothing: made at once, not recorded.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

Tensor full(const Shape& shape, double value, CreateOptions options = {});
Tensor zeros(const Shape& shape, CreateOptions options = {});
Tensor ones(const Shape& shape, CreateOptions options = {});
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor full_like(const Tensor& x, double value);
// 0, 1, ..., count - 1.
Tensor arange(int64_t count, CreateOptions options = {});
// start, start + step, ... below stop (above it for a negative step), computed in double. Throws Error(value) for a
// step of 0 or one that leads away from stop.
Tensor arange(double start, double stop, double step = 1, CreateOptions options = {});
// `count` numbers from start to stop, both included, each from the nearer end.
Tensor linspace(double start, double stop, int64_t count, CreateOptions options = {});
// [rows, columns] with 1 on the main diagonal; columns = -1: square.
Tensor eye(int64_t rows, int64_t columns = -1, CreateOptions options = {});

// The coordinates of a grid whose axes are these vectors: for each vector an array of the grid's shape. ij: vector k
// runs along axis k; xy: the first two axes are exchanged, as images have them.
enum class Indexing : uint8_t { ij, xy };
std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, Indexing indexing = Indexing::ij);

}  // namespace outrace
