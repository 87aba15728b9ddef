// Order along the rows of [rows, count], stable: elements become unsigned keys in the same order (NaN last, -0 like 0),
// inverted for a descending one, and travel with their position, so that no two are alike. Short rows count what comes
// before each element; others are sorted by tiles of PER elements an item, whose runs are merged pass by pass.
// X, KEY_BITS, KIND (0 unsigned, 1 signed, 2 floating), INFINITE (bits of an infinity); WIDE: key and position do not
// fit in one word.
#define TOP ((u64)1 << (KEY_BITS - 1))
#define ALL (TOP - 1 + TOP)
INLINE u64 key_of(X v, i32 descending) {
#if KIND == 0
  u64 key = (u64)v;
#elif KIND == 1
  u64 key = ((u64)v & ALL) ^ TOP;
#else
#if KEY_BITS == 64
  const u64 bits = AS_U64(v);
#elif KEY_BITS == 32
  const u64 bits = AS_U32(v);
#else
  const u64 bits = v;
#endif
  const u64 magnitude = bits & (TOP - 1);
  u64 key = magnitude == 0 ? TOP : (bits & TOP) != 0 ? ~bits & ALL : bits | TOP;
  key = magnitude > INFINITE ? ALL : key;
#endif
  return descending ? key ^ ALL : key;
}

#if WIDE
#define PER 4
typedef struct {
  u64 key;
  i64 at;
} ENTRY;
INLINE ENTRY entry_of(u64 key, i64 at) {
  ENTRY e;
  e.key = key;
  e.at = at;
  return e;
}
#define PAD entry_of(~(u64)0, I64_LARGEST)
#define PLACE(e) ((e).at)
INLINE i32 comes_first(ENTRY a, ENTRY b) { return a.key < b.key || (a.key == b.key && a.at < b.at); }
#else
#define PER 8
typedef u64 ENTRY;
INLINE ENTRY entry_of(u64 key, i64 at) { return key << 32 | (u64)at; }
#define PAD (~(u64)0)
#define PLACE(e) ((i64)((e) & 0xffffffffu))
INLINE i32 comes_first(ENTRY a, ENTRY b) { return a < b; }
#endif
#define TILE (256 * PER)

// Ranks skip to keep - 1 of each row go to a result [rows, keep - skip].
#define EMIT(row, rank, place) \
  if ((rank) >= skip && (rank) < keep) result[(row) * (keep - skip) + (rank)-skip] = place

// An item an element.
KERNEL(rank_rows, 256, 1)(ARRAY(X, x), ARRAY(i64, result), i64 rows, i64 count, i64 skip, i64 keep, i32 descending) {
  AT(X, x);
  AT(i64, result);
  const i64 item = GROUP_ID(0) * 256 + (i64)LOCAL_ID(0);
  if (item < rows * count) {
    const i64 row = item / count;
    const i32 at = (i32)(item - row * count), size = (i32)count;
    const u64 own = key_of(x[item], descending);
    x += row * count;
    i32 rank = 0;
    for (i32 i = 0; i < size; ++i) {
      const u64 key = key_of(x[i], descending);
      rank += key < own || (key == own && i < at);
    }
    EMIT(row, rank, at);
  }
}

// How many of the first `taken` entries of two sorted runs together come from the first one.
#define SPLIT_RUNS(name, SPACE)                                                                       \
  INLINE i64 name(const SPACE ENTRY *a, i64 a_count, const SPACE ENTRY *b, i64 b_count, i64 taken) {  \
    i64 low = taken > b_count ? taken - b_count : 0, high = taken < a_count ? taken : a_count;        \
    while (low < high) {                                                                              \
      const i64 middle = (low + high) / 2;                                                            \
      const i32 later = comes_first(b[taken - 1 - middle], a[middle]);                                \
      high = later ? middle : high;                                                                   \
      low = later ? low : middle + 1;                                                                 \
    }                                                                                                 \
    return low;                                                                                       \
  }
SPLIT_RUNS(split_local, LOCAL)
SPLIT_RUNS(split_global, GLOBAL)

// Entries number first to first + PER - 1 of two runs that lie one behind the other in `shared`, in order, from item to
// item; all items of the group call it.
INLINE void merge_local(LOCAL ENTRY *shared, i32 base, i32 a_count, i32 b_count, i32 first) {
  const LOCAL ENTRY *a = shared + base, *b = a + a_count;
  const i32 taken = first - base < a_count + b_count ? first - base : a_count + b_count;
  ENTRY merged[PER];
  i32 i = (i32)split_local(a, a_count, b, b_count, taken), j = taken - i;
#pragma unroll
  for (i32 k = 0; k < PER; ++k) {
    const i32 from_a = i < a_count && (j >= b_count || !comes_first(b[j], a[i]));
    if (from_a)
      merged[k] = a[i];
    else if (j < b_count)
      merged[k] = b[j];
    else
      merged[k] = PAD;
    i += from_a;
    j += !from_a;
  }
  BARRIER();
#pragma unroll
  for (i32 k = 0; k < PER; ++k) shared[first + k] = merged[k];
  BARRIER();
}

// Where a tile's entries go: the `stride` first ones to entries [rows, out_count], or positions to the result.
#define PUT_TILE(row, tile)                                                                 \
  for (i32 k = 0; k < PER; ++k) {                                                           \
    const i32 n = k * 256 + lane;                                                           \
    const i64 rank = (tile)*stride + n;                                                     \
    if (last) {                                                                             \
      EMIT(row, rank, PLACE(shared[n]));                                                    \
    } else if (n < stride && rank < out_count) {                                            \
      to[(row)*out_count + rank] = shared[n];                                               \
    }                                                                                       \
  }

// A group a tile. `source`: 0 reads x, 1 entries, 2 entries to be ordered by position.
KERNEL(sort_tiles, 256, 1)
(ARRAY(X, x), ARRAY(ENTRY, from), ARRAY(ENTRY, to), ARRAY(i64, result), i64 count, i64 tiles, i64 stride, i64 out_count,
 i64 skip, i64 keep, i32 source, i32 last, i32 descending) {
  LOCAL_ARRAY(ENTRY, shared, TILE);
  AT(X, x);
  AT(ENTRY, from);
  AT(ENTRY, to);
  AT(i64, result);
  const i64 row = GROUP_ID(0) / tiles, tile = GROUP_ID(0) % tiles;
  const i32 lane = LOCAL_ID(0);
  for (i32 k = 0; k < PER; ++k) {
    const i64 i = tile * TILE + k * 256 + lane;
    ENTRY e = PAD;
    if (i < count) {
      if (source == 0)
        e = entry_of(key_of(x[row * count + i], descending), i);
      else
        e = from[row * count + i];
      if (source == 2) e = entry_of(0, PLACE(e));
    }
    shared[k * 256 + lane] = e;
  }
  BARRIER();
  const i32 first = lane * PER;
  ENTRY own[PER];
#pragma unroll
  for (i32 k = 0; k < PER; ++k) own[k] = shared[first + k];
#pragma unroll
  for (i32 turn = 0; turn < PER; ++turn) {
#pragma unroll
    for (i32 k = 0; k + 1 < PER; ++k) {
      if (((k ^ turn) & 1) == 0 && comes_first(own[k + 1], own[k])) {
        const ENTRY e = own[k];
        own[k] = own[k + 1];
        own[k + 1] = e;
      }
    }
  }
#pragma unroll
  for (i32 k = 0; k < PER; ++k) shared[first + k] = own[k];
  BARRIER();
  for (i32 run = PER; run < TILE && run < count; run *= 2)
    merge_local(shared, first / (2 * run) * (2 * run), run, run, first);
  PUT_TILE(row, tile)
}

// A group a tile of the runs, 2 * run long each, that come of those of `run`.
KERNEL(merge_runs, 256, 1)
(ARRAY(ENTRY, from), ARRAY(ENTRY, to), ARRAY(i64, result), i64 count, i64 tiles, i64 run, i64 out_count, i64 skip,
 i64 keep, i32 last) {
  LOCAL_ARRAY(ENTRY, shared, TILE);
  LOCAL_ARRAY(i64, splits, 2);
  AT(ENTRY, from);
  AT(ENTRY, to);
  AT(i64, result);
  const i64 row = GROUP_ID(0) / tiles, tile = GROUP_ID(0) % tiles, stride = TILE;
  const i32 lane = LOCAL_ID(0);
  const i64 base = tile * TILE / (2 * run) * (2 * run), left = count - base;
  const i64 a_count = left < run ? left : run, b_count = left - a_count < run ? left - a_count : run;
  const GLOBAL ENTRY *a = from + row * count + base, *b = a + a_count;
  const i64 begin = tile * TILE - base;
  const i64 end = begin + TILE < a_count + b_count ? begin + TILE : a_count + b_count;
  if (lane < 2) splits[lane] = split_global(a, a_count, b, b_count, lane == 0 ? begin : end);
  BARRIER();
  const i64 a_begin = splits[0], b_begin = begin - a_begin;
  const i32 of_a = (i32)(splits[1] - a_begin), all = (i32)(end - begin);
  for (i32 k = 0; k < PER; ++k) {
    const i32 n = k * 256 + lane;
    if (n < of_a)
      shared[n] = a[a_begin + n];
    else if (n < all)
      shared[n] = b[b_begin + (n - of_a)];
  }
  BARRIER();
  merge_local(shared, 0, of_a, all - of_a, lane * PER);
  PUT_TILE(row, tile)
}
