// y [outer, size, inner]: the sum of the windows [outer, windows, inner, length] that cover each entry, in their order;
// window w begins at w * step. T: stored type; ACC: f32, f64 or i64; SUM(a, b); INDEX.
KERNEL(fold_windows, 256, 1)
(ARRAY(T, x), ARRAY(T, y), i64 count, i64 windows, i64 length, i64 step, i64 size, i64 size_magic, i64 inner,
 i64 inner_magic) {
  AT(T, x);
  AT(T, y);
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) {
    const INDEX line = DIVIDE(i, (INDEX)inner, inner_magic), c = i - line * (INDEX)inner;
    const INDEX outer = DIVIDE(line, (INDEX)size, size_magic);
    const i64 p = (i64)(line - outer * (INDEX)size);
    const i64 first = p < length ? 0 : (p - length) / step + 1;
    const i64 last = p / step + 1 < windows ? p / step + 1 : windows;
    const GLOBAL T *from = x + ((i64)outer * windows * inner + (i64)c) * length + p;
    ACC sum = (ACC)0;
    for (i64 w = first; w < last; ++w) sum = SUM(sum, CONVERT(ACC, T, from[w * (inner * length - step)]));
    y[i] = CONVERT(T, ACC, sum);
  }
}
