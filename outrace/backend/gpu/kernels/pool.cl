// Pooling over windows of images x [images, h, w, c] to [images, oh, ow, c], and its derivatives. T: type of x; V: of
// what is picked or added; COMPUTE: of its sums; ADAPTIVE: window i covers i * size / count up to its like for i + 1.
#define NUMBER(v) CONVERT(COMPUTE, V, v)
#define SIZES                                                                                                    \
  i64 count, i64 h, i64 w, i64 c, i64 oh, i64 ow, i64 kh, i64 kw, i64 stride_h, i64 stride_w, i64 top, i64 left, \
      i64 bottom, i64 right, i64 dilation_h, i64 dilation_w, i64 count_padding
#define ITEM (GROUP_ID(0) * 256 + LOCAL_ID(0))

// Entries begin, begin + step, ... below end of an axis; `divisor`: how many of them a mean counts.
typedef struct {
  i64 begin, end, step, divisor;
} WINDOW;
INLINE WINDOW window_of(i64 i, i64 size, i64 count, i64 kernel_size, i64 stride, i64 before, i64 after, i64 step,
                        i64 count_padding) {
  WINDOW window;
#if ADAPTIVE
  window.begin = i * size / count;
  window.end = ((i + 1) * size + count - 1) / count;
  window.step = 1;
  window.divisor = window.end - window.begin;
#else
  const i64 first = i * stride - before, last = first + step * (kernel_size - 1) + 1;
  window.begin = first < 0 ? first + (-first + step - 1) / step * step : first;
  window.end = last < size ? last : size;
  window.step = step;
  window.divisor = window.end > window.begin ? (window.end - window.begin + step - 1) / step : 0;
  const i64 padded = size + after - first;  // places from the window's first to the padding's end
  if (count_padding != 0) window.divisor = kernel_size < padded ? kernel_size : padded;
#endif
  return window;
}
#define ROW_WINDOW(i) window_of(i, h, oh, kh, stride_h, top, bottom, dilation_h, count_padding)
#define COLUMN_WINDOW(i) window_of(i, w, ow, kw, stride_w, left, right, dilation_w, count_padding)

// The windows of an axis that may cover entry p: the first, and the end.
INLINE i64 first_window(i64 p, i64 size, i64 count, i64 extent, i64 stride, i64 before) {
#if ADAPTIVE
  const i64 i = p * count / size;
  return i > 0 ? i - 1 : 0;
#else
  const i64 over = p + before - extent + 1;
  return over <= 0 ? 0 : (over + stride - 1) / stride;
#endif
}
INLINE i64 end_window(i64 p, i64 size, i64 count, i64 stride, i64 before) {
#if ADAPTIVE
  const i64 end = (p + 1) * count / size + 1;
#else
  const i64 end = (p + before) / stride + 1;
#endif
  return end < count ? end : count;
}
#define EACH_COVERING(row, column)                                                                              \
  for (i64 row = first_window(at_h, h, oh, dilation_h * (kh - 1) + 1, stride_h, top),                           \
           row##_end = end_window(at_h, h, oh, stride_h, top);                                                  \
       row < row##_end; ++row)                                                                                  \
    for (i64 column = first_window(at_w, w, ow, dilation_w * (kw - 1) + 1, stride_w, left),                     \
             column##_end = end_window(at_w, w, ow, stride_w, left);                                            \
         column < column##_end; ++column)

INLINE i32 covers(WINDOW window, i64 p) {
  return p >= window.begin && p < window.end && (p - window.begin) % window.step == 0;
}

#if MAXIMUM
#define VALUE(v) CONVERT(ORDER, T, v)
// The entry of the window where channel k of an image is largest: the first of equals, the first NaN.
INLINE i64 largest(const GLOBAL T *x, WINDOW rows, WINDOW columns, i64 w, i64 c) {
  i64 place = rows.begin * w + columns.begin;
  ORDER best = VALUE(x[place * c]);
  for (i64 i = rows.begin; i < rows.end; i += rows.step)
    for (i64 j = columns.begin; j < columns.end; j += columns.step) {
      const ORDER v = VALUE(x[(i * w + j) * c]);
      if (v > best || (v != v && best == best)) {
        best = v;
        place = i * w + j;
      }
    }
  return place;
}

KERNEL(max_pool_pick, 256, 1)(ARRAY(T, x), ARRAY(V, values), ARRAY(V, y), SIZES) {
  AT(T, x);
  AT(V, values);
  AT(V, y);
  const i64 i = ITEM;
  if (i < count) {
    const i64 k = i % c, image = i / (c * ow * oh) * h * w * c + k;
    const i64 place = largest(x + image, ROW_WINDOW(i / (c * ow) % oh), COLUMN_WINDOW(i / c % ow), w, c);
    y[i] = values[image + place * c];
  }
}

KERNEL(max_pool_grad, 256, 1)(ARRAY(T, x), ARRAY(V, g), ARRAY(V, dx), SIZES) {
  AT(T, x);
  AT(V, g);
  AT(V, dx);
  const i64 i = ITEM;
  if (i < count) {
    const i64 k = i % c, at_w = i / c % w, at_h = i / (c * w) % h, image = i / (c * w * h);
    COMPUTE sum = (COMPUTE)0;
    EACH_COVERING(row, column) {
      const WINDOW rows = ROW_WINDOW(row), columns = COLUMN_WINDOW(column);
      if (covers(rows, at_h) && covers(columns, at_w) &&
          largest(x + image * h * w * c + k, rows, columns, w, c) == at_h * w + at_w)
        sum += NUMBER(g[((image * oh + row) * ow + column) * c + k]);
    }
    dx[i] = CONVERT(V, COMPUTE, sum);
  }
}
#else
KERNEL(avg_pool, 256, 1)(ARRAY(V, x), ARRAY(V, y), SIZES) {
  AT(V, x);
  AT(V, y);
  const i64 i = ITEM;
  if (i < count) {
    const WINDOW rows = ROW_WINDOW(i / (c * ow) % oh), columns = COLUMN_WINDOW(i / c % ow);
    x += i / (c * ow * oh) * h * w * c + i % c;
    COMPUTE sum = (COMPUTE)0;
    for (i64 row = rows.begin; row < rows.end; row += rows.step)
      for (i64 column = columns.begin; column < columns.end; column += columns.step)
        sum += NUMBER(x[(row * w + column) * c]);
    y[i] = CONVERT(V, COMPUTE, sum / (COMPUTE)(rows.divisor * columns.divisor));
  }
}

KERNEL(avg_pool_grad, 256, 1)(ARRAY(V, g), ARRAY(V, dx), SIZES) {
  AT(V, g);
  AT(V, dx);
  const i64 i = ITEM;
  if (i < count) {
    const i64 k = i % c, at_w = i / c % w, at_h = i / (c * w) % h, image = i / (c * w * h);
    COMPUTE sum = (COMPUTE)0;
    EACH_COVERING(row, column) {
      const WINDOW rows = ROW_WINDOW(row), columns = COLUMN_WINDOW(column);
      if (covers(rows, at_h) && covers(columns, at_w))
        sum += NUMBER(g[((image * oh + row) * ow + column) * c + k]) / (COMPUTE)(rows.divisor * columns.divisor);
    }
    dx[i] = CONVERT(V, COMPUTE, sum);
  }
}
#endif
