// Every op a user calls. Each checks shapes and dtypes at once and throws Error naming them; nothing is computed before
// it is asked for. Shapes broadcast as NumPy's do; of two dtypes the wider is taken (int with float: float).
#pragma once
#include "outrace/graph/tensor.h"
#include "outrace/ops/activation.h"
#include "outrace/ops/concat.h"
#include "outrace/ops/creation.h"
#include "outrace/ops/diagonal.h"
#include "outrace/ops/einsum.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/embedding.h"
#include "outrace/ops/index.h"
#include "outrace/ops/loss.h"
#include "outrace/ops/matmul.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/normalization.h"
#include "outrace/ops/padding.h"
#include "outrace/ops/random.h"
#include "outrace/ops/reduce.h"
