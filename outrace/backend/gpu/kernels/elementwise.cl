// A fused program over its whole space. COMPUTE, INDEX, TURNS (1, or the argument), ROWS, EPILOGUE.
#if ROWS
// Groups take pieces of rows [.., inner].
LANES_KERNEL(elementwise)(i64 turns, i64 inner, i64 pieces EPILOGUE_PARAMS) {
  EPILOGUE_ARRAYS
  const INDEX row = (INDEX)(GROUP_ID(0) / pieces);
  const INDEX begin = (INDEX)(GROUP_ID(0) - (i64)row * pieces) * (INDEX)(256 * TURNS);
  for (i64 k = 0; k < TURNS; ++k) {
    const INDEX first = begin + (INDEX)k * 256;
    FOR_LANES(lane, inner - (i64)first) {
      const INDEX c = first + (INDEX)lane;
      EPILOGUE_AT(row * (INDEX)inner + c, row, c, (COMPUTE)0);
    }
  }
}
#else
LANES_KERNEL(elementwise)(i64 turns, i64 count EPILOGUE_PARAMS) {
  EPILOGUE_ARRAYS
  for (i64 k = 0; k < TURNS; ++k) {
    const INDEX first = ((INDEX)GROUP_ID(0) * (INDEX)TURNS + (INDEX)k) * 256;
    FOR_LANES(lane, count - (i64)first) EPILOGUE(first + (INDEX)lane, (COMPUTE)0);
  }
}
#endif
