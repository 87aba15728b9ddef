// What follows a product that a library stored in memory of the call. COMPUTE (the product's type), INDEX, EACH,
// EPILOGUE.
KERNEL(finish, 256, 1)(ARRAY(COMPUTE, product), i64 count EPILOGUE_PARAMS) {
  AT(COMPUTE, product);
  EPILOGUE_ARRAYS
  const INDEX first = (INDEX)GROUP_ID(0) * (256 * EACH) + (INDEX)LOCAL_ID(0);
  for (i32 k = 0; k < EACH; ++k) {
    const INDEX i = first + (INDEX)k * 256;
    if (i < (INDEX)count) EPILOGUE(i, product[i]);
  }
}
