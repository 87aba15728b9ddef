# outrace_embed(FILE NAME OUT): a source file that holds FILE's bytes as `outrace::embedded::NAME`, a span of bytes. OUT
# gets the path of that source. Programs so carry their data and look for no file at run time.
# Called as a script (cmake -DINPUT=... -DOUTPUT=... -DNAME=... -P embed.cmake), it writes one such source.

# outrace_embed_texts(NAME OUT FILES...): the same for many text files, as `outrace::embedded::NAME`, a span of
# {file name, text} in the order of the names.

if(CMAKE_SCRIPT_MODE_FILE AND DEFINED INPUTS)
  string(REPLACE "|" ";" inputs "${INPUTS}")
  set(arrays "")
  set(rows "")
  set(count 0)
  foreach(input IN LISTS inputs)
    file(READ ${input} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    cmake_path(GET input FILENAME file)
    string(APPEND arrays "static const char text_${count}[] = {${bytes}0};\n")
    string(APPEND rows "    {\"${file}\", {text_${count}, sizeof(text_${count}) - 1}},\n")
    math(EXPR count "${count} + 1")
  endforeach()
  file(WRITE ${OUTPUT} "#include <span>
#include <string_view>
#include <utility>

namespace outrace::embedded {
extern const std::span<const std::pair<std::string_view, std::string_view>> ${NAME};
${arrays}static const std::pair<std::string_view, std::string_view> rows[] = {
${rows}};
const std::span<const std::pair<std::string_view, std::string_view>> ${NAME}(rows);
}  // namespace outrace::embedded
")
  return()
endif()

if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${INPUT} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  file(WRITE ${OUTPUT} "#include <cstdint>
#include <span>

namespace outrace::embedded {
extern const std::span<const uint8_t> ${NAME};
static const uint8_t bytes[] = {${bytes}};
const std::span<const uint8_t> ${NAME}(bytes);
}  // namespace outrace::embedded
")
  return()
endif()

set(OUTRACE_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(outrace_embed input name out)
  set(output ${PROJECT_BINARY_DIR}/generated/${name}.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DNAME=${name} -P ${OUTRACE_EMBED_SCRIPT}
    DEPENDS ${input} ${OUTRACE_EMBED_SCRIPT} VERBATIM)
  set(${out} ${output} PARENT_SCOPE)
endfunction()

function(outrace_embed_texts name out)
  set(output ${PROJECT_BINARY_DIR}/generated/${name}.cpp)
  list(JOIN ARGN "|" inputs)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUTS=${inputs} -DOUTPUT=${output} -DNAME=${name} -P ${OUTRACE_EMBED_SCRIPT}
    DEPENDS ${ARGN} ${OUTRACE_EMBED_SCRIPT} VERBATIM)
  set(${out} ${output} PARENT_SCOPE)
endfunction()
