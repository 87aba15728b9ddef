// Softmax, log-softmax, cross-entropy and its gradient over the last axis of [rows, columns].
// X (stored type of logits, loss and gradient), COMPUTE, TEAMS: a group a row (long rows), else an item a row.
// For the losses TARGET (i64 or i32), REDUCTION (0 none, 1 mean, 2 sum).
GROUP_FOLD(fold_max, COMPUTE, PASTE(max_, COMPUTE))
GROUP_FOLD(fold_sum, COMPUTE, ADD)
GROUP_FOLD(fold_count, i64, ADD)

#if TEAMS
#define LANES 256
#define LANE ((i64)LOCAL_ID(0))
#define ROW GROUP_ID(0)
#define ROW_MAX(shared, v) fold_max(shared, v)
#define ROW_SUM(shared, v) fold_sum(shared, v)
#else
#define LANES 1
#define LANE ((i64)0)
#define ROW (GROUP_ID(0) * 256 + (i64)LOCAL_ID(0))
#define ROW_MAX(shared, v) (v)
#define ROW_SUM(shared, v) (v)
#endif
#define NUMBER(v) CONVERT(COMPUTE, X, v)
#define EXP(v) PASTE(exp_, COMPUTE)(v)
#define LOG(v) PASTE(log_, COMPUTE)(v)
#define INFINITE CONVERT(COMPUTE, f32, F32_INFINITY)

// The largest number of a row and the sum of e^(x - max); a NaN spoils the sum.
INLINE COMPUTE row_max(LOCAL COMPUTE *shared, const GLOBAL X *x, i64 columns) {
  COMPUTE largest = -INFINITE;
  for (i64 from = 0; from < columns; from += LANES) {
    const i64 c = from + LANE;
    if (c < columns) largest = PASTE(max_, COMPUTE)(largest, NUMBER(x[c]));
  }
  return ROW_MAX(shared, largest);
}
INLINE COMPUTE row_sum(LOCAL COMPUTE *shared, const GLOBAL X *x, i64 columns, COMPUTE largest) {
  COMPUTE sum = (COMPUTE)0;
  for (i64 from = 0; from < columns; from += LANES) {
    const i64 c = from + LANE;
    if (c < columns) sum += EXP(NUMBER(x[c]) - largest);
  }
  return ROW_SUM(shared, sum);
}

#if !defined(TARGET)
KERNEL(softmax, 256, 1)(ARRAY(X, x), ARRAY(X, y), i64 rows, i64 columns) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  AT(X, x);
  AT(X, y);
#if TEAMS
  const i64 width = columns;
#else
  const i64 width = ROW < rows ? columns : 0;
#endif
  x += ROW * width;
  y += ROW * width;
  const COMPUTE largest = row_max(shared, x, width);
  const COMPUTE sum = row_sum(shared, x, width, largest);
#if LOGARITHM
  const COMPUTE log_sum = LOG(sum);
#else
  const COMPUTE factor = (COMPUTE)1 / sum;
#endif
  for (i64 from = 0; from < width; from += LANES) {
    const i64 c = from + LANE;
#if LOGARITHM
    // Two subtractions: largest + log_sum, rounded, would lose log_sum where the numbers are huge.
    if (c < width) y[c] = CONVERT(X, COMPUTE, NUMBER(x[c]) - largest - log_sum);
#else
    if (c < width) y[c] = CONVERT(X, COMPUTE, EXP(NUMBER(x[c]) - largest) * factor);
#endif
  }
}
#else

// The class of a row; -1 where it is ignored, or wrong and reported.
INLINE i64 class_of(const GLOBAL TARGET *targets, i64 row, i64 classes, i64 ignored, GLOBAL i64 *status, i32 number) {
  const i64 t = (i64)targets[row];
  if (t == ignored) return -1;
  if (t >= 0 && t < classes) return t;
  if (LANE == 0) report(status, number, t, row);
  return -1;
}

#if !GRADIENT
// losses: of type COMPUTE, to be folded, or the result if nothing is.
KERNEL(cross_entropy, 256, 1)
(ARRAY(X, x), ARRAY(TARGET, targets), ARRAY(LOSS, losses), ARRAY(i64, status), i32 number, i64 rows, i64 columns,
 i64 ignored) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  AT(X, x);
  AT(TARGET, targets);
  AT(LOSS, losses);
  AT(i64, status);
  const i64 row = ROW;
  const i64 chosen = row < rows ? class_of(targets, row, columns, ignored, status, number) : -1;
  const i64 width = chosen >= 0 ? columns : 0;
  x += row * width;
  const COMPUTE largest = row_max(shared, x, width);
  const COMPUTE sum = row_sum(shared, x, width, largest);
  if (row < rows && LANE == 0) {
    COMPUTE loss = (COMPUTE)0;
    if (chosen >= 0) loss = LOG(sum) - (NUMBER(x[chosen]) - largest);
    losses[row] = CONVERT(LOSS, COMPUTE, loss);
  }
}

#if !TEAMS && REDUCTION != 0
// One group for a small batch of short rows: the losses and their sum.
KERNEL(cross_entropy_small, 256, 1)
(ARRAY(X, x), ARRAY(TARGET, targets), ARRAY(X, loss), ARRAY(i64, status), i32 number, i64 rows, i64 columns,
 i64 ignored) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  LOCAL_ARRAY(i64, shared_count, 256);
  AT(X, x);
  AT(TARGET, targets);
  AT(X, loss);
  AT(i64, status);
  COMPUTE total = (COMPUTE)0;
  i64 kept = 0;
  for (i64 from = 0; from < rows; from += 256) {
    const i64 row = from + (i64)LOCAL_ID(0);
    if (row < rows) {
      const i64 chosen = class_of(targets, row, columns, ignored, status, number);
      kept += (i64)targets[row] != ignored;
      if (chosen >= 0) {
        const GLOBAL X *mine = x + row * columns;
        const COMPUTE largest = row_max(shared, mine, columns);
        total += LOG(row_sum(shared, mine, columns, largest)) - (NUMBER(mine[chosen]) - largest);
      }
    }
  }
  total = fold_sum(shared, total);
  kept = fold_count(shared_count, kept);
  if (LOCAL_ID(0) == 0) loss[0] = CONVERT(X, COMPUTE, REDUCTION == 1 ? total / (COMPUTE)kept : total);
}
#endif

// One group: the losses of all rows in one number.
KERNEL(fold_losses, 256, 1)
(ARRAY(COMPUTE, losses), ARRAY(TARGET, targets), ARRAY(X, loss), i64 rows, i64 ignored) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  LOCAL_ARRAY(i64, shared_count, 256);
  AT(COMPUTE, losses);
  AT(TARGET, targets);
  AT(X, loss);
  COMPUTE total = (COMPUTE)0;
  i64 kept = 0;
  for (i64 block = 0; block < rows; block += 256 * 64) {
    COMPUTE sum = (COMPUTE)0;
    for (i64 from = block; from < rows && from < block + 256 * 64; from += 256) {
      const i64 r = from + (i64)LOCAL_ID(0);
      if (r < rows) {
        sum += losses[r];
        kept += (i64)targets[r] != ignored;
      }
    }
    total += sum;
  }
  total = fold_sum(shared, total);
  kept = fold_count(shared_count, kept);
  if (LOCAL_ID(0) == 0) loss[0] = CONVERT(X, COMPUTE, REDUCTION == 1 ? total / (COMPUTE)kept : total);
}
#else
// gradient = g * (softmax(x) - one at the class), 0 in ignored rows. Each group counts the rows that are kept.
KERNEL(cross_entropy_grad, 256, 1)
(ARRAY(X, x), ARRAY(TARGET, targets), ARRAY(X, g), ARRAY(X, y), ARRAY(i64, status), i32 number, i64 rows, i64 columns,
 i64 ignored) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  LOCAL_ARRAY(i64, shared_count, 256);
  AT(X, x);
  AT(TARGET, targets);
  AT(X, g);
  AT(X, y);
  AT(i64, status);
  const i64 row = ROW;
  COMPUTE scale = (COMPUTE)0;
#if REDUCTION == 1
  i64 kept = 0;
  for (i64 from = 0; from < rows; from += 256) {
    const i64 r = from + (i64)LOCAL_ID(0);
    if (r < rows) kept += (i64)targets[r] != ignored;
  }
  scale = NUMBER(g[0]) / (COMPUTE)fold_count(shared_count, kept);
#elif REDUCTION == 2
  scale = NUMBER(g[0]);
#else
  if (row < rows) scale = NUMBER(g[row]);
#endif
  const i64 chosen = row < rows ? class_of(targets, row, columns, ignored, status, number) : -1;
  const i64 width = chosen >= 0 ? columns : 0;
  x += row * columns;
  y += row * columns;
  const COMPUTE largest = row_max(shared, x, width);
  const COMPUTE factor = scale / row_sum(shared, x, width, largest);
  if (row < rows) {
    for (i64 from = 0; from < columns; from += LANES) {
      const i64 c = from + LANE;
      if (c < columns) {
        COMPUTE slope = (COMPUTE)0;
        if (chosen >= 0) slope = EXP(NUMBER(x[c]) - largest) * factor - (c == chosen ? scale : (COMPUTE)0);
        y[c] = CONVERT(X, COMPUTE, slope);
      }
    }
  }
}
#endif
#endif
