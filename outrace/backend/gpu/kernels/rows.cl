// Softmax, log-softmax, logsumexp, cross-entropy and its gradient over the last axis of [rows, columns].
// X (stored type of logits, loss and gradient), COMPUTE, TEAMS: a group a row (long rows), else an item a row.
// For the losses TARGET (i64 or i32), REDUCTION (0 none, 1 mean, 2 sum).
GROUP_FOLD(fold_max, COMPUTE, PASTE(max_, COMPUTE))
GROUP_FOLD(fold_sum, COMPUTE, ADD)
GROUP_FOLD(fold_count, i64, ADD)

LANE_FOLD(lanes_max, COMPUTE, PASTE(max_, COMPUTE))
LANE_FOLD(lanes_sum, COMPUTE, ADD)
LANE_FOLD(lanes_count, i64, ADD)

// FOR_COLUMNS runs over the columns c = from + lane of the group's row, or of the item's.
#if TEAMS
#define ROWS_KERNEL(name) LANES_KERNEL(name)
#define IS_FIRST (LOCAL_ID(0) == 0)
#define ROW GROUP_ID(0)
#define FOR_COLUMNS(width) for (i64 from = 0; from < (width); from += 256) FOR_LANES(lane, (width) - from)
#else
#define ROWS_KERNEL(name) KERNEL(name, 256, 1)
#define IS_FIRST 1
#define ROW (GROUP_ID(0) * 256 + (i64)LOCAL_ID(0))
#define FOR_COLUMNS(width) for (i64 from = 0, lane = 0; from < (width); ++from)
#endif
#define NUMBER(v) CONVERT(COMPUTE, X, v)
#define EXP(v) PASTE(exp_, COMPUTE)(v)
#define LOG(v) PASTE(log_, COMPUTE)(v)
#define INFINITE CONVERT(COMPUTE, f32, F32_INFINITY)

// The largest number of a row and the sum of e^(x - max); a NaN spoils the sum.
#if TEAMS
INLINE COMPUTE row_max(LOCAL COMPUTE *shared, const GLOBAL X *x, i64 columns) {
  LANE_ARRAY(COMPUTE, largest);
  FOR_LANES(lane, 256) OF_LANE(largest, lane) = -INFINITE;
  FOR_COLUMNS(columns) OF_LANE(largest, lane) = PASTE(max_, COMPUTE)(OF_LANE(largest, lane), NUMBER(x[from + lane]));
  return lanes_max(shared, largest);
}
INLINE COMPUTE row_sum(LOCAL COMPUTE *shared, const GLOBAL X *x, i64 columns, COMPUTE largest) {
  LANE_ARRAY(COMPUTE, sum);
  FOR_LANES(lane, 256) OF_LANE(sum, lane) = (COMPUTE)0;
  FOR_COLUMNS(columns) OF_LANE(sum, lane) += EXP(NUMBER(x[from + lane]) - largest);
  return lanes_sum(shared, sum);
}
#else
INLINE COMPUTE row_max(LOCAL COMPUTE *shared, const GLOBAL X *x, i64 columns) {
  COMPUTE largest = -INFINITE;
  for (i64 c = 0; c < columns; ++c) largest = PASTE(max_, COMPUTE)(largest, NUMBER(x[c]));
  return largest;
}
INLINE COMPUTE row_sum(LOCAL COMPUTE *shared, const GLOBAL X *x, i64 columns, COMPUTE largest) {
  COMPUTE sum = (COMPUTE)0;
  for (i64 c = 0; c < columns; ++c) sum += EXP(NUMBER(x[c]) - largest);
  return sum;
}
#endif

#if !defined(TARGET)
ROWS_KERNEL(softmax)(ARRAY(X, x), ARRAY(X, y), i64 rows, i64 columns) {
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
  FOR_COLUMNS(width) {
    const i64 c = from + lane;
#if LOGARITHM
    // Two subtractions: largest + log_sum, rounded, would lose log_sum where the numbers are huge.
    y[c] = CONVERT(X, COMPUTE, NUMBER(x[c]) - largest - log_sum);
#else
    y[c] = CONVERT(X, COMPUTE, EXP(NUMBER(x[c]) - largest) * factor);
#endif
  }
}

ROWS_KERNEL(logsumexp)(ARRAY(X, x), ARRAY(X, y), i64 rows, i64 columns) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  AT(X, x);
  AT(X, y);
  const i64 row = ROW, width = row < rows ? columns : 0;
  x += row * width;
  const COMPUTE largest = row_max(shared, x, width);
  const COMPUTE sum = row_sum(shared, x, width, largest);
  // An infinity, or a NaN, is the result itself: its differences say nothing.
  if (row < rows && IS_FIRST) {
    const i32 finite = largest > -INFINITE && largest < INFINITE;
    y[row] = CONVERT(X, COMPUTE, finite ? LOG(sum) + largest : largest);
  }
}
#else

// The class of a row; -1 where it is ignored, or wrong and reported.
INLINE i64 class_of(const GLOBAL TARGET *targets, i64 row, i64 classes, i64 ignored, GLOBAL i64 *status, i32 number) {
  const i64 t = (i64)targets[row];
  if (t == ignored) return -1;
  if (t >= 0 && t < classes) return t;
  if (IS_FIRST) report(status, number, t, row);
  return -1;
}

#if !GRADIENT
// losses: of type COMPUTE, to be folded, or the result if nothing is.
ROWS_KERNEL(cross_entropy)
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
  if (row < rows && IS_FIRST) {
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
ROWS_KERNEL(cross_entropy_grad)
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
#if TEAMS
  LANE_ARRAY(i64, kept);
  FOR_LANES(lane, 256) OF_LANE(kept, lane) = 0;
  FOR_COLUMNS(rows) OF_LANE(kept, lane) += (i64)targets[from + lane] != ignored;
  scale = NUMBER(g[0]) / (COMPUTE)lanes_count(shared_count, kept);
#else
  i64 kept = 0;
  for (i64 from = 0; from < rows; from += 256) {
    const i64 r = from + (i64)LOCAL_ID(0);
    if (r < rows) kept += (i64)targets[r] != ignored;
  }
  scale = NUMBER(g[0]) / (COMPUTE)fold_count(shared_count, kept);
#endif
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
    FOR_COLUMNS(columns) {
      const i64 c = from + lane;
      COMPUTE slope = (COMPUTE)0;
      if (chosen >= 0) slope = EXP(NUMBER(x[c]) - largest) * factor - (c == chosen ? scale : (COMPUTE)0);
      y[c] = CONVERT(X, COMPUTE, slope);
    }
  }
}
#endif
#endif
