// Positions sorted by the place that their index names, stably: a radix sort of 4 bits a pass, without atomics.
// I: i64 or i32; INDEX; KEY(i, entry): the place of position i, below `places`; KEY_PARAMS. An index out of range is
// reported and goes behind all others. Keys and positions are u32.
#define BINS 16
#define EACH 8
#define TILE (256 * EACH)

INLINE u32 key_of(const GLOBAL I *index, INDEX i, i64 size, i64 places, GLOBAL i64 *status, i32 number KEY_PARAMS) {
  const i64 entry = checked_entry((i64)index[i], size, (i64)i, 1, status, number);
  return entry >= 0 ? (u32)KEY(i, entry) : (u32)places;
}

// counts [BINS][256]: how many of its keys each item has in each bin. Makes of them how many there are in the bin
// before the item's, and of totals[bin] how many the group has.
INLINE void rank_keys(LOCAL u32 *counts, LOCAL u32 *partial, LOCAL u32 *totals) {
  const i32 lane = LOCAL_ID(0), bin = lane / BINS;
  LOCAL u32 *own = counts + lane * BINS;  // sixteen items' counts of one bin
  BARRIER();
  u32 sum = 0;
  for (i32 k = 0; k < BINS; ++k) sum += own[k];
  partial[lane] = sum;
  BARRIER();
  u32 before = 0;
  for (i32 k = bin * BINS; k < lane; ++k) before += partial[k];
  for (i32 k = 0; k < BINS; ++k) {
    const u32 n = own[k];
    own[k] = before;
    before += n;
  }
  if (lane % BINS == BINS - 1) totals[bin] = before;
  BARRIER();
}
#define CLEAR_COUNTS() \
  for (i32 bin = 0; bin < BINS; ++bin) counts[bin * 256 + lane] = 0
#define DIGIT(key) (((key) >> shift) & (BINS - 1))

// One group, up to TILE positions: all passes in local memory.
KERNEL(sort_tile, 256, 1)
(ARRAY(I, index), ARRAY(i64, status), i32 number, ARRAY(u32, keys), ARRAY(u32, order), i64 count, i64 size, i64 places,
 i64 bits KEY_PARAMS) {
  LOCAL_ARRAY(u32, key, TILE);
  LOCAL_ARRAY(u16, position, TILE);
  LOCAL_ARRAY(u32, counts, BINS * 256);
  LOCAL_ARRAY(u32, partial, 256);
  LOCAL_ARRAY(u32, totals, BINS);
  AT(I, index);
  AT(i64, status);
  AT(u32, keys);
  AT(u32, order);
  const i32 lane = LOCAL_ID(0);
  const i32 begin = lane * EACH;
  for (i32 k = 0; k < EACH; ++k) {
    const i32 i = k * 256 + lane;
    key[i] = i < count ? key_of(index, (INDEX)i, size, places, status, number KEY_ARGS) : ~(u32)0;
    position[i] = (u16)i;
  }
  BARRIER();
  for (i32 shift = 0; shift < (i32)bits; shift += 4) {
    u32 moved[EACH];
    u16 from[EACH];
    CLEAR_COUNTS();
    for (i32 k = 0; k < EACH; ++k) {
      moved[k] = key[begin + k];
      from[k] = position[begin + k];
      ++counts[DIGIT(moved[k]) * 256 + lane];
    }
    rank_keys(counts, partial, totals);
    for (i32 k = 0; k < EACH; ++k) {
      const i32 bin = (i32)DIGIT(moved[k]);
      u32 to = counts[bin * 256 + lane]++;
      for (i32 lower = 0; lower < bin; ++lower) to += totals[lower];
      key[to] = moved[k];
      position[to] = from[k];
    }
    BARRIER();
  }
  for (i32 k = 0; k < EACH; ++k) {
    const i32 i = k * 256 + lane;
    if (i < count) {
      keys[i] = key[i];
      order[i] = (u32)position[i];
    }
  }
}

// Larger ones: keys, then for each 4 bits the tiles' counts, their sums in order, and each tile to its places.
KERNEL(sort_keys, 256, 1)
(ARRAY(I, index), ARRAY(i64, status), i32 number, ARRAY(u32, keys), ARRAY(u32, order), i64 count, i64 size,
 i64 places KEY_PARAMS) {
  AT(I, index);
  AT(i64, status);
  AT(u32, keys);
  AT(u32, order);
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) {
    keys[i] = key_of(index, i, size, places, status, number KEY_ARGS);
    order[i] = (u32)i;
  }
}

KERNEL(sort_count, 256, 1)(ARRAY(u32, keys), ARRAY(u32, sums), i64 count, i32 shift) {
  LOCAL_ARRAY(u32, counts, BINS * 256);
  LOCAL_ARRAY(u32, partial, 256);
  LOCAL_ARRAY(u32, totals, BINS);
  AT(u32, keys);
  AT(u32, sums);
  const i32 lane = LOCAL_ID(0);
  const i64 tile = GROUP_ID(0) * TILE;
  CLEAR_COUNTS();
  // Whose key it is makes no difference here: neighbours read neighbours.
  for (i32 k = 0; k < EACH; ++k) {
    const i64 i = tile + k * 256 + lane;
    if (i < count) ++counts[DIGIT(keys[i]) * 256 + lane];
  }
  rank_keys(counts, partial, totals);
  if (lane < BINS) sums[lane * GROUPS(0) + GROUP_ID(0)] = totals[lane];
}

// One group: each number becomes the sum of those before it.
KERNEL(sort_sums, 256, 1)(ARRAY(u32, sums), i64 count) {
  LOCAL_ARRAY(u32, partial, 256);
  AT(u32, sums);
  const i32 lane = LOCAL_ID(0);
  const i64 each = (count + 255) / 256, begin = lane * each, end = begin + each < count ? begin + each : count;
  u32 sum = 0;
  for (i64 i = begin; i < end; ++i) sum += sums[i];
  partial[lane] = sum;
  BARRIER();
  u32 before = 0;
  for (i32 k = 0; k < lane; ++k) before += partial[k];
  for (i64 i = begin; i < end; ++i) {
    const u32 n = sums[i];
    sums[i] = before;
    before += n;
  }
}

KERNEL(sort_place, 256, 1)
(ARRAY(u32, keys), ARRAY(u32, order), ARRAY(u32, sums), ARRAY(u32, next_keys), ARRAY(u32, next_order), i64 count,
 i32 shift) {
  LOCAL_ARRAY(u32, counts, BINS * 256);
  LOCAL_ARRAY(u32, partial, 256);
  LOCAL_ARRAY(u32, totals, BINS);
  AT(u32, keys);
  AT(u32, order);
  AT(u32, sums);
  AT(u32, next_keys);
  AT(u32, next_order);
  const i32 lane = LOCAL_ID(0);
  const i64 begin = GROUP_ID(0) * TILE + lane * EACH;
  CLEAR_COUNTS();
  for (i32 k = 0; k < EACH; ++k)
    if (begin + k < count) ++counts[DIGIT(keys[begin + k]) * 256 + lane];
  rank_keys(counts, partial, totals);
  for (i32 k = 0; k < EACH; ++k)
    if (begin + k < count) {
      const u32 key = keys[begin + k];
      const i32 bin = (i32)DIGIT(key);
      const i64 to = (i64)sums[bin * GROUPS(0) + GROUP_ID(0)] + counts[bin * 256 + lane]++;
      next_keys[to] = key;
      next_order[to] = order[begin + k];
    }
}

// first[p]: how many keys lie below p; p up to `places`.
KERNEL(find_first, 256, 1)(ARRAY(u32, keys), ARRAY(u32, first), i64 count, i64 places) {
  AT(u32, keys);
  AT(u32, first);
  const i64 p = GROUP_ID(0) * 256 + LOCAL_ID(0);
  if (p <= places) {
    i64 low = 0, high = count;
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if ((i64)keys[middle] < p)
        low = middle + 1;
      else
        high = middle;
    }
    first[p] = (u32)low;
  }
}
