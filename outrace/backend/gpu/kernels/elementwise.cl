// A fused program over its whole space. COMPUTE, INDEX, EACH, ROWS, EPILOGUE.
#if ROWS
// Groups take pieces of rows [.., inner].
KERNEL(elementwise, 256, 1)(i64 inner, i64 pieces EPILOGUE_PARAMS) {
  EPILOGUE_ARRAYS
  const INDEX row = (INDEX)(GROUP_ID(0) / pieces);
  const INDEX begin = (INDEX)(GROUP_ID(0) - (i64)row * pieces) * (256 * EACH) + (INDEX)LOCAL_ID(0);
  UNROLL for (i32 k = 0; k < EACH; ++k) {
    const INDEX c = begin + (INDEX)k * 256;
    if (c < (INDEX)inner) EPILOGUE_AT(row * (INDEX)inner + c, row, c, (COMPUTE)0);
  }
}
#else
KERNEL(elementwise, 256, 1)(i64 count EPILOGUE_PARAMS) {
  EPILOGUE_ARRAYS
  const INDEX first = (INDEX)GROUP_ID(0) * (256 * EACH) + (INDEX)LOCAL_ID(0);
  UNROLL for (i32 k = 0; k < EACH; ++k) {
    const INDEX i = first + (INDEX)k * 256;
    if (i < (INDEX)count) EPILOGUE(i, (COMPUTE)0);
  }
}
#endif
