# Compiler options of all our own code, in one interface target that users of the library never see.

# GCC 12 warns of `"text" + std::string` (its bug 105329, mended in 13), with precompiled headers in three ways.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(false_warnings -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()

add_library(outrace_options INTERFACE)
target_compile_options(outrace_options INTERFACE
  -Wall -Wextra $<$<BOOL:${OUTRACE_WERROR}>:-Werror>
  ${false_warnings}
  -ffp-contract=off  # fused and unfused programs must give the same bits; FMA only where the source asks for it
  -fno-math-errno)   # lets sqrt and its like become one instruction; nobody reads errno

if(OUTRACE_SANITIZE)
  # Without recovery, so that undefined behaviour ends a test with an error. PUBLIC use goes through the global flags:
  # every object, GoogleTest's main included, must be linked with the runtime.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# Files named *_simd.cpp hold kernels for AVX2 and FMA; they are called only where the processor has both. Debug builds
# optimize them a little: at -O0 GCC 12 hands AVX-512 vectors between functions in places that are not aligned for them.
function(outrace_simd_flags)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()
  endif()
  list(FILTER ARGV INCLUDE REGEX "_simd\\.cpp$")
  set_source_files_properties(${ARGV} PROPERTIES
    COMPILE_OPTIONS "-march=haswell;$<$<CONFIG:Debug>:-O1>"
    SKIP_PRECOMPILE_HEADERS ON)  # which are compiled without those options
endfunction()

# For targets whose time goes into the library: their own code, full of others' templates, compiles twice as fast.
function(outrace_lightly_optimized target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Headers that most files of a target read, compiled once: halves the time of a build. Sources still include what they
# use; -DOUTRACE_PRECOMPILE=OFF builds without.
function(outrace_precompile target)
  if(NOT OUTRACE_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE -fpch-preprocess)  # for ccache
endfunction()
