// A fused program over its whole space. COMPUTE, INDEX, EACH, EPILOGUE.
KERNEL(elementwise, 256, 1)(i64 count EPILOGUE_PARAMS) {
  EPILOGUE_ARRAYS
  const INDEX first = (INDEX)GROUP_ID(0) * (256 * EACH) + (INDEX)LOCAL_ID(0);
  for (i32 k = 0; k < EACH; ++k) {
    const INDEX i = first + (INDEX)k * 256;
    if (i < (INDEX)count) EPILOGUE(i, (COMPUTE)0);
  }
}
