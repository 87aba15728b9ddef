// Variance along an axis, layer norm and RMS norm over the last one, and their derivatives.
// X, COMPUTE, LANES: items that share a line, 256 or fewer (a group then has several lines); WEIGHTS: bit 0 there is a
// weight, bit 1 a bias; MEANS: variance hands out means too. `centered` is 0 for RMS norm: then moments are about 0.
#define NUMBER(v) CONVERT(COMPUTE, X, v)
#define LINES (256 / LANES)
// EACH_LANE: what the first `count` lanes of a line do; KEEP and MINE: what a lane keeps; line_sum: the sum over the
// lanes of a line, in a fixed tree.
#if LANES == 256
#define LINE_KERNEL(name) LANES_KERNEL(name)
#define LANE LOCAL_ID(0)
#define LINE GROUP_ID(0)
#define EACH_LANE(lane, count) FOR_LANES(lane, count)
#define KEEP(x) LANE_ARRAY(COMPUTE, x)
#define MINE(x) OF_LANE(x, lane)
LANE_FOLD(line_sum, COMPUTE, ADD)
#else
#define LINE_KERNEL(name) KERNEL(name, 256, 1)
#define LANE (LOCAL_ID(0) % LANES)
#define LINE (GROUP_ID(0) * LINES + LOCAL_ID(0) / LANES)
#define EACH_LANE(lane, count) for (i64 lane = LANE, lane##_in = lane < (count); lane##_in; lane##_in = 0)
#define KEEP(x) COMPUTE x[1]
#define MINE(x) x[0]
INLINE COMPUTE line_sum(LOCAL COMPUTE *shared, const COMPUTE *value) {
  const i64 lane = LANE, at = LOCAL_ID(0);
  BARRIER();
  shared[at] = value[0];
  BARRIER();
  for (i32 step = LANES / 2; step > 0; step /= 2) {
    if (lane < step) shared[at] = shared[at] + shared[at + step];
    BARRIER();
  }
  return shared[at - lane];
}
#endif
#define CLEAR(x) EACH_LANE(lane, LANES) MINE(x) = (COMPUTE)0
// Elements whose moments are taken about their own mean, in two passes over what is then in cache.
#define BLOCK (LANES * 32)

// The mean is base + rest: a large one beside small differences needs more digits than one number has. `squares`: the
// sum of squared differences from it.
typedef struct {
  COMPUTE count, base, rest, squares;
} MOMENTS;
INLINE MOMENTS moments_of(COMPUTE count, COMPUTE base, COMPUTE rest, COMPUTE squares) {
  MOMENTS m;
  m.count = count;
  m.base = base;
  m.rest = rest;
  m.squares = squares;
  return m;
}
#define NO_MOMENTS moments_of((COMPUTE)0, (COMPUTE)0, (COMPUTE)0, (COMPUTE)0)
INLINE MOMENTS join(MOMENTS a, MOMENTS b) {
  const COMPUTE count = a.count + b.count, share = b.count / count;
  const COMPUTE apart = (b.base - a.base) + (b.rest - a.rest);
  if (a.count == (COMPUTE)0) return b;
  if (b.count == (COMPUTE)0) return a;
  return moments_of(count, a.base, a.rest + apart * share, a.squares + b.squares + apart * apart * (a.count * share));
}
// From sums of differences from `mean` and of their squares.
INLINE MOMENTS corrected(COMPUTE count, COMPUTE mean, COMPUTE sum, COMPUTE squares, i32 centered) {
  if (centered == 0) return moments_of(count, (COMPUTE)0, (COMPUTE)0, squares);
  return moments_of(count, mean, sum / count, squares - sum * (sum / count));
}

// Moments of `width` (0 in groups' idle lines) numbers of a line; `length` of all lines of the group.
INLINE MOMENTS line_moments(LOCAL COMPUTE *shared, const GLOBAL X *x, i64 width, i64 length, i32 centered) {
  MOMENTS total = NO_MOMENTS;
  for (i64 block = 0; block < length; block += BLOCK) {
    const i64 end = block + BLOCK < length ? block + BLOCK : length;
    const i64 own_end = end < width ? end : width;
    const COMPUTE count = (COMPUTE)(own_end > block ? own_end - block : 0);
    COMPUTE mean = (COMPUTE)0, sum = (COMPUTE)0;
    KEEP(sums);
    KEEP(squares);
    CLEAR(sums);
    CLEAR(squares);
    if (centered != 0) {
      for (i64 from = block; from < end; from += LANES) {
        EACH_LANE(lane, own_end - from) MINE(sums) += NUMBER(x[from + lane]);
      }
      mean = line_sum(shared, sums) / count;
      CLEAR(sums);
    }
    for (i64 from = block; from < end; from += LANES) {
      EACH_LANE(lane, own_end - from) {
        const COMPUTE d = NUMBER(x[from + lane]) - mean;
        MINE(sums) += d;
        MINE(squares) += d * d;
      }
    }
    if (centered != 0) sum = line_sum(shared, sums);
    total = join(total, corrected(count, mean, sum, line_sum(shared, squares), centered));
  }
  return total;
}

GROUP_FOLD(group_sum, COMPUTE, ADD)

// The moments of a line's parts, joined by a group: neighbours first within an item, then in a tree.
INLINE MOMENTS join_parts(LOCAL MOMENTS *shared, const GLOBAL MOMENTS *parts, i64 count) {
  const i32 lane = LOCAL_ID(0);
  const i64 each = (count + 255) / 256, first = lane * each;
  MOMENTS total = NO_MOMENTS;
  for (i64 k = 0; k < each; ++k)
    if (first + k < count) total = join(total, parts[first + k]);
  shared[lane] = total;
  BARRIER();
  for (i32 step = 1; step < 256; step *= 2) {
    if (lane % (2 * step) == 0) shared[lane] = join(shared[lane], shared[lane + step]);
    BARRIER();
  }
  return shared[0];
}

#if VARIANCE
// MEANS: the means come first, then the variances; over no elements both are 0.
INLINE void put_moments(GLOBAL X *y, i64 line, i64 lines, MOMENTS m, i64 free) {
#if MEANS
  y[line] = CONVERT(X, COMPUTE, m.base + m.rest);
  y[lines + line] = CONVERT(X, COMPUTE, free > 0 ? m.squares / (COMPUTE)free : (COMPUTE)0);
#else
  const COMPUTE nan = CONVERT(COMPUTE, f32, F32_NAN);
  y[line] = CONVERT(X, COMPUTE, free > 0 ? m.squares / (COMPUTE)free : nan);
#endif
}
#define PARAMS                                                                                                     \
  ARRAY(X, x), ARRAY(X, y), ARRAY(MOMENTS, found), i64 lines, i64 size, i64 inner, i64 parts, i64 length, i64 free
#define ARRAYS \
  AT(X, x);    \
  AT(X, y);    \
  AT(MOMENTS, found)
#define HAND_OVER(moments)                        \
  if (parts > 1)                                  \
    found[line * parts + part] = moments;         \
  else                                            \
    put_moments(y, line, lines, moments, free);

LINE_KERNEL(variance)(PARAMS) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  ARRAYS;
  const i64 line = LINE / parts, part = LINE % parts, begin = part * length;
  const i64 left = line < lines ? size - begin : 0;
  const i64 width = left < length ? left : length;
  x += line < lines ? line * size + begin : 0;
  const MOMENTS m = line_moments(shared, x, width, length, 1);
  if (line < lines && LANE == 0) {
    HAND_OVER(m)
  }
}

// A lane a part: neighbours lie side by side. Blocks are joined in two levels. Groups: {lines, parts}.
// What each lane does with its number i, `v`: where inner is `lines`, those of a group are neighbours.
#define EACH_NUMBER(i, ...)                                                 \
  if (inner == lines) {                                                     \
    const GLOBAL X *row = x + (i)*inner + first;                            \
    FOR_LANES(lane, lines - first) {                                        \
      const COMPUTE v = NUMBER(row[lane]);                                  \
      __VA_ARGS__                                                           \
    }                                                                       \
  } else {                                                                  \
    FOR_LANES(lane, lines - first) {                                        \
      const COMPUTE v = NUMBER(x[OF_LANE(base, lane) + (i)*inner]);         \
      __VA_ARGS__                                                           \
    }                                                                       \
  }
LANES_KERNEL(variance_items)(PARAMS) {
  ARRAYS;
  const i64 first = GROUP_ID(0) * 256, part = GROUP_ID(1), begin = part * length;
  const i64 end = begin + length < size ? begin + length : size;
  LANE_ARRAY(i64, base);
  LANE_ARRAY(COMPUTE, mean);
  LANE_ARRAY(COMPUTE, sum);
  LANE_ARRAY(COMPUTE, squares);
  LANE_ARRAY(MOMENTS, total);
  LANE_ARRAY(MOMENTS, some);
  FOR_LANES(lane, lines - first) {
    const i64 line = first + lane;
    OF_LANE(base, lane) = line / inner * size * inner + line % inner;
    OF_LANE(total, lane) = OF_LANE(some, lane) = NO_MOMENTS;
  }
  for (i64 block = begin; block < end; block += 32) {
    const i64 last = block + 32 < end ? block + 32 : end;
    const COMPUTE count = (COMPUTE)(last - block);
    FOR_LANES(lane, 256) OF_LANE(mean, lane) = OF_LANE(sum, lane) = OF_LANE(squares, lane) = (COMPUTE)0;
    for (i64 i = block; i < last; ++i) {
      EACH_NUMBER(i, OF_LANE(mean, lane) += v;)
    }
    FOR_LANES(lane, 256) OF_LANE(mean, lane) /= count;
    for (i64 i = block; i < last; ++i) {
      EACH_NUMBER(i, const COMPUTE d = v - OF_LANE(mean, lane); OF_LANE(sum, lane) += d;
                  OF_LANE(squares, lane) += d * d;)
    }
    const i32 whole = (block - begin) % 1024 == 992;
    FOR_LANES(lane, lines - first) {
      const MOMENTS m = corrected(count, OF_LANE(mean, lane), OF_LANE(sum, lane), OF_LANE(squares, lane), 1);
      OF_LANE(some, lane) = join(OF_LANE(some, lane), m);
      if (whole) {
        OF_LANE(total, lane) = join(OF_LANE(total, lane), OF_LANE(some, lane));
        OF_LANE(some, lane) = NO_MOMENTS;
      }
    }
  }
  FOR_LANES(lane, lines - first) {
    const i64 line = first + lane;
    const MOMENTS m = join(OF_LANE(total, lane), OF_LANE(some, lane));
    HAND_OVER(m)
  }
}

KERNEL(variance_join, 256, 1)(ARRAY(MOMENTS, found), ARRAY(X, y), i64 parts, i64 free) {
  LOCAL_ARRAY(MOMENTS, shared, 256);
  AT(MOMENTS, found);
  AT(X, y);
  const MOMENTS m = join_parts(shared, found + GROUP_ID(0) * parts, parts);
  if (LOCAL_ID(0) == 0) put_moments(y, GROUP_ID(0), GROUPS(0), m, free);
}
#endif

#if NORM
// ---- y = (x - mean) * inverse * weight + bias over lines of `columns`; `weights`: bit 0 a weight, bit 1 a bias ----
typedef struct {
  COMPUTE mean, inverse;
} STATS;
typedef struct {
  COMPUTE h, product;  // sums of h and of h * normalized, later their means
} SUMS;
INLINE STATS stats_of(MOMENTS m, i64 columns, COMPUTE eps) {
  const COMPUTE variance = m.squares / (COMPUTE)columns;
  STATS s;
  s.mean = m.base + m.rest;
  s.inverse = (COMPUTE)1 / PASTE(sqrt_, COMPUTE)((variance < (COMPUTE)0 ? (COMPUTE)0 : variance) + eps);
  return s;
}
#define WEIGHT(c) ((weights & 1) != 0 ? NUMBER(weight[c]) : (COMPUTE)1)
#define BIAS(c) ((weights & 2) != 0 ? NUMBER(bias[c]) : (COMPUTE)0)
#define NORMALIZED(s, i) ((NUMBER(x[i]) - (s).mean) * (s).inverse)
#define STORE(y, i, v) y[i] = CONVERT(X, COMPUTE, v)
#define RESULT(s, i, c) STORE(y, i, NORMALIZED(s, i) * WEIGHT(c) + BIAS(c))
// h = g * weight; dx = inverse * (h - mean(h) - normalized * mean(h * normalized)), without mean(h) for RMS norm.
#define UPSTREAM(i, c) (NUMBER(g[i]) * WEIGHT(c))
#define SLOPE(s, t, i, c) STORE(dx, i, (UPSTREAM(i, c) - (t).h - NORMALIZED(s, i) * (t).product) * (s).inverse)

INLINE SUMS means_of(COMPUTE h, COMPUTE product, i64 columns, i32 centered) {
  SUMS t;
  t.h = centered != 0 ? h / (COMPUTE)columns : (COMPUTE)0;
  t.product = product / (COMPUTE)columns;
  return t;
}
// Sums over `width` numbers of a line from column `begin` on; x and g point to its first.
INLINE SUMS line_sums(LOCAL COMPUTE *shared, const GLOBAL X *x, const GLOBAL X *g, const GLOBAL X *weight, i32 weights,
                      STATS s, i64 begin, i64 width, i64 length) {
  KEEP(all_h);
  KEEP(all_products);
  CLEAR(all_h);
  CLEAR(all_products);
  for (i64 block = 0; block < length; block += BLOCK) {
    const i64 end = block + BLOCK < length ? block + BLOCK : length;
    KEEP(h);
    KEEP(products);
    CLEAR(h);
    CLEAR(products);
    for (i64 from = block; from < end; from += LANES) {
      EACH_LANE(lane, width - from) {
        const i64 i = from + lane;
        const COMPUTE v = UPSTREAM(i, begin + i);
        MINE(h) += v;
        MINE(products) += v * NORMALIZED(s, i);
      }
    }
    EACH_LANE(lane, LANES) {
      MINE(all_h) += MINE(h);
      MINE(all_products) += MINE(products);
    }
  }
  SUMS total;
  total.h = line_sum(shared, all_h);
  total.product = line_sum(shared, all_products);
  return total;
}

LINE_KERNEL(norm_lines)
(ARRAY(X, x), ARRAY(X, weight), ARRAY(X, bias), ARRAY(X, y), i64 lines, i64 columns, COMPUTE eps, i32 centered,
 i32 weights) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  AT(X, x);
  AT(X, weight);
  AT(X, bias);
  AT(X, y);
  const i64 line = LINE, width = line < lines ? columns : 0;
  x += line * width;
  y += line * width;
  const STATS s = stats_of(line_moments(shared, x, width, columns, centered), columns, eps);
  for (i64 from = 0; from < columns; from += LANES) {
    EACH_LANE(lane, width - from) {
      const i64 c = from + lane;
      RESULT(s, c, c);
    }
  }
}

LINE_KERNEL(norm_grad)
(ARRAY(X, x), ARRAY(X, g), ARRAY(X, weight), ARRAY(X, dx), i64 lines, i64 columns, COMPUTE eps, i32 centered,
 i32 weights) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  AT(X, x);
  AT(X, g);
  AT(X, weight);
  AT(X, dx);
  const i64 line = LINE, width = line < lines ? columns : 0;
  x += line * width;
  g += line * width;
  dx += line * width;
  const STATS s = stats_of(line_moments(shared, x, width, columns, centered), columns, eps);
  const SUMS sums = line_sums(shared, x, g, weight, weights, s, 0, width, columns);
  const SUMS t = means_of(sums.h, sums.product, columns, centered);
  for (i64 from = 0; from < columns; from += LANES) {
    EACH_LANE(lane, width - from) {
      const i64 c = from + lane;
      SLOPE(s, t, c, c);
    }
  }
}

// ---- the same in passes, for few long lines (and LANES 256) and for the weights ----
LINE_KERNEL(norm_stats)
(ARRAY(X, x), ARRAY(MOMENTS, found), ARRAY(STATS, stats), i64 lines, i64 columns, i64 parts, i64 length, COMPUTE eps,
 i32 centered) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  AT(X, x);
  AT(MOMENTS, found);
  AT(STATS, stats);
  const i64 line = LINE / parts, begin = LINE % parts * length;
  const i64 left = line < lines ? columns - begin : 0;
  x += line < lines ? line * columns + begin : 0;
  const MOMENTS m = line_moments(shared, x, left < length ? left : length, length, centered);
  if (line < lines && LANE == 0) {
    if (parts > 1)
      found[LINE] = m;
    else
      stats[line] = stats_of(m, columns, eps);
  }
}
KERNEL(norm_stats_join, 256, 1)
(ARRAY(MOMENTS, found), ARRAY(STATS, stats), i64 columns, i64 parts, COMPUTE eps) {
  LOCAL_ARRAY(MOMENTS, shared, 256);
  AT(MOMENTS, found);
  AT(STATS, stats);
  const MOMENTS m = join_parts(shared, found + GROUP_ID(0) * parts, parts);
  if (LOCAL_ID(0) == 0) stats[GROUP_ID(0)] = stats_of(m, columns, eps);
}

// Groups of the second dimension: lines.
KERNEL(norm_apply, 256, 1)
(ARRAY(X, x), ARRAY(X, weight), ARRAY(X, bias), ARRAY(X, y), ARRAY(STATS, stats), i64 columns, i32 weights) {
  AT(X, x);
  AT(X, weight);
  AT(X, bias);
  AT(X, y);
  AT(STATS, stats);
  const i64 c = GROUP_ID(0) * 256 + (i64)LOCAL_ID(0), line = GROUP_ID(1);
  const STATS s = stats[line];
  if (c < columns) RESULT(s, line * columns + c, c);
}

LINE_KERNEL(norm_sums)
(ARRAY(X, x), ARRAY(X, g), ARRAY(X, weight), ARRAY(STATS, stats), ARRAY(SUMS, sums), i64 columns, i64 parts,
 i64 length, i32 weights) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  AT(X, x);
  AT(X, g);
  AT(X, weight);
  AT(STATS, stats);
  AT(SUMS, sums);
  const i64 line = GROUP_ID(0) / parts, begin = GROUP_ID(0) % parts * length;
  const i64 width = columns - begin < length ? columns - begin : length, skip = line * columns + begin;
  const SUMS t = line_sums(shared, x + skip, g + skip, weight, weights, stats[line], begin, width, width);
  if (LOCAL_ID(0) == 0) sums[GROUP_ID(0)] = t;
}
// A group a line; the means come behind the parts of all lines.
KERNEL(norm_sums_join, 256, 1)(ARRAY(SUMS, sums), i64 lines, i64 columns, i64 parts, i32 centered) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  AT(SUMS, sums);
  COMPUTE h = (COMPUTE)0, product = (COMPUTE)0;
  for (i64 from = 0; from < parts; from += 256) {
    const i64 p = from + (i64)LOCAL_ID(0);
    if (p < parts) {
      h += sums[GROUP_ID(0) * parts + p].h;
      product += sums[GROUP_ID(0) * parts + p].product;
    }
  }
  h = group_sum(shared, h);
  product = group_sum(shared, product);
  if (LOCAL_ID(0) == 0) sums[lines * parts + GROUP_ID(0)] = means_of(h, product, columns, centered);
}
KERNEL(norm_grad_apply, 256, 1)
(ARRAY(X, x), ARRAY(X, g), ARRAY(X, weight), ARRAY(X, dx), ARRAY(STATS, stats), ARRAY(SUMS, sums), i64 lines,
 i64 columns, i64 parts, i32 weights) {
  AT(X, x);
  AT(X, g);
  AT(X, weight);
  AT(X, dx);
  AT(STATS, stats);
  AT(SUMS, sums);
  const i64 c = GROUP_ID(0) * 256 + (i64)LOCAL_ID(0), line = GROUP_ID(1);
  const STATS s = stats[line];
  const SUMS t = sums[lines * parts + line];
  if (c < columns) SLOPE(s, t, line * columns + c, c);
}

// Sums over lines for each column: an item a column and part of the lines. Partial sums [parts, 2, columns].
KERNEL(norm_weight_sums, 256, 1)
(ARRAY(X, x), ARRAY(X, g), ARRAY(STATS, stats), ARRAY(COMPUTE, partial), i64 lines, i64 columns, i64 parts,
 i64 length) {
  AT(X, x);
  AT(X, g);
  AT(STATS, stats);
  AT(COMPUTE, partial);
  const i64 item = GROUP_ID(0) * 256 + (i64)LOCAL_ID(0);
  const i64 part = item / columns, c = item % columns, begin = part * length;
  if (part < parts) {
    COMPUTE weight = (COMPUTE)0, bias = (COMPUTE)0;
    for (i64 block = 0; block < length; block += 32) {
      COMPUTE weight_sum = (COMPUTE)0, bias_sum = (COMPUTE)0;
      for (i64 k = block; k < block + 32; ++k) {
        const i64 line = begin + k;
        if (line < lines) {
          const STATS s = stats[line];
          const COMPUTE v = NUMBER(g[line * columns + c]);
          weight_sum += v * NORMALIZED(s, line * columns + c);
          bias_sum += v;
        }
      }
      weight += weight_sum;
      bias += bias_sum;
    }
    partial[part * 2 * columns + c] = weight;
    partial[(part * 2 + 1) * columns + c] = bias;
  }
}
// What the parts found: an item a result, or, where there are few, a group.
KERNEL(norm_weight_join, 256, 1)(ARRAY(COMPUTE, partial), ARRAY(X, y), i64 results, i64 parts) {
  AT(COMPUTE, partial);
  AT(X, y);
  const i64 result = GROUP_ID(0) * 256 + (i64)LOCAL_ID(0);
  if (result < results) {
    COMPUTE total = (COMPUTE)0;
    for (i64 from = 0; from < parts; from += 32) {
      COMPUTE sum = (COMPUTE)0;
      for (i64 p = from; p < from + 32; ++p)
        if (p < parts) sum += partial[p * results + result];
      total += sum;
    }
    STORE(y, result, total);
  }
}
KERNEL(norm_weight_join_team, 256, 1)(ARRAY(COMPUTE, partial), ARRAY(X, y), i64 results, i64 parts) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  AT(COMPUTE, partial);
  AT(X, y);
  COMPUTE sum = (COMPUTE)0;
  for (i64 from = 0; from < parts; from += 256) {
    const i64 p = from + (i64)LOCAL_ID(0);
    if (p < parts) sum += partial[p * results + GROUP_ID(0)];
  }
  sum = group_sum(shared, sum);
  if (LOCAL_ID(0) == 0) STORE(y, GROUP_ID(0), sum);
}
#endif
