// Every op a user calls. Each checks shapes and dtypes at once and throws Error naming them; nothing is computed before
// it is asked for. Shapes broadcast as NumPy's do; of two dtypes the wider is taken (int with float: float).
#pragma once
#include "outrace/graph/tensor.h"
#include "outrace/ops/arg_reduce.h"
#include "outrace/ops/creation.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/logsumexp.h"
#include "outrace/ops/loss.h"
#include "outrace/ops/matmul.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/random.h"
#include "outrace/ops/reduce.h"
#include "outrace/ops/scan.h"
#include "outrace/ops/sort.h"
#include "outrace/ops/statistics.h"
#include "outrace/ops/take_along.h"
