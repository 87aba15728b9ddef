// Convolution of images x [images, h, w, c] with weights [o, c / groups, kh, kw] to y [images, oh, ow, o], and its
// derivatives, each output element by one item that adds its terms in order. T: stored type; COMPUTE: f32 or f64.
#define NUMBER(v) CONVERT(COMPUTE, T, v)
#define SIZES                                                                                                     \
  i64 count, i64 h, i64 w, i64 c, i64 oh, i64 ow, i64 o, i64 groups, i64 kh, i64 kw, i64 stride_h, i64 stride_w,  \
      i64 top, i64 left, i64 dilation_h, i64 dilation_w
#define ITEM (GROUP_ID(0) * 256 + LOCAL_ID(0))

KERNEL(conv, 256, 1)(ARRAY(T, x), ARRAY(T, weight), ARRAY(T, y), SIZES) {
  AT(T, x);
  AT(T, weight);
  AT(T, y);
  const i64 i = ITEM;
  if (i < count) {
    const i64 to = i % o, column = i / o % ow, row = i / (o * ow) % oh, image = i / (o * ow * oh);
    const i64 channels = c / groups, from = to / (o / groups) * channels;
    COMPUTE sum = (COMPUTE)0;
    for (i64 r = 0; r < kh; ++r) {
      const i64 at_h = row * stride_h - top + r * dilation_h;
      if (at_h < 0 || at_h >= h) continue;
      for (i64 s = 0; s < kw; ++s) {
        const i64 at_w = column * stride_w - left + s * dilation_w;
        if (at_w < 0 || at_w >= w) continue;
        const GLOBAL T *entry = x + ((image * h + at_h) * w + at_w) * c + from;
        const GLOBAL T *tap = weight + (to * channels * kh + r) * kw + s;
        for (i64 k = 0; k < channels; ++k) sum += NUMBER(entry[k]) * NUMBER(tap[k * kh * kw]);
      }
    }
    y[i] = CONVERT(T, COMPUTE, sum);
  }
}

// dx: the outputs whose windows cover an entry.
KERNEL(conv_input_grad, 256, 1)(ARRAY(T, g), ARRAY(T, weight), ARRAY(T, dx), SIZES) {
  AT(T, g);
  AT(T, weight);
  AT(T, dx);
  const i64 i = ITEM;
  if (i < count) {
    const i64 from = i % c, column = i / c % w, row = i / (c * w) % h, image = i / (c * w * h);
    const i64 channels = c / groups, outputs = o / groups, first = from / channels * outputs;
    COMPUTE sum = (COMPUTE)0;
    for (i64 r = 0; r < kh; ++r) {
      const i64 at_h = row + top - r * dilation_h;
      if (at_h < 0 || at_h % stride_h != 0 || at_h / stride_h >= oh) continue;
      for (i64 s = 0; s < kw; ++s) {
        const i64 at_w = column + left - s * dilation_w;
        if (at_w < 0 || at_w % stride_w != 0 || at_w / stride_w >= ow) continue;
        const GLOBAL T *entry = g + ((image * oh + at_h / stride_h) * ow + at_w / stride_w) * o + first;
        const GLOBAL T *tap = weight + ((first * channels + from % channels) * kh + r) * kw + s;
        for (i64 k = 0; k < outputs; ++k) sum += NUMBER(entry[k]) * NUMBER(tap[k * channels * kh * kw]);
      }
    }
    dx[i] = CONVERT(T, COMPUTE, sum);
  }
}

// dw: a group sums the products of one tap over the images' positions.
GROUP_FOLD(group_sum, COMPUTE, ADD)
KERNEL(conv_weight_grad, 256, 1)(ARRAY(T, x), ARRAY(T, g), ARRAY(T, dw), SIZES) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  AT(T, x);
  AT(T, g);
  AT(T, dw);
  const i64 i = GROUP_ID(0), channels = c / groups;
  const i64 s = i % kw, r = i / kw % kh, k = i / (kw * kh) % channels, to = i / (kw * kh * channels);
  const i64 from = to / (o / groups) * channels + k;
  COMPUTE sum = (COMPUTE)0;
  for (i64 p = LOCAL_ID(0); p < count * oh * ow; p += 256) {
    const i64 at_h = p / ow % oh * stride_h - top + r * dilation_h, at_w = p % ow * stride_w - left + s * dilation_w;
    if (at_h >= 0 && at_h < h && at_w >= 0 && at_w < w)
      sum += NUMBER(g[p * o + to]) * NUMBER(x[((p / (ow * oh) * h + at_h) * w + at_w) * c + from]);
  }
  sum = group_sum(shared, sum);
  if (LOCAL_ID(0) == 0) dw[i] = CONVERT(T, COMPUTE, sum);
}
