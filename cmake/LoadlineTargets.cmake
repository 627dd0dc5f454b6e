# loadline_sources(VAR DIR...): the sources right in each DIR, tests apart. A new file needs no line in CMake.
function(loadline_sources var)
  set(patterns)
  foreach(dir IN LISTS ARGN)
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/${dir}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(${var} ${sources} PARENT_SCOPE)
endfunction()

# What most sources read of other libraries and seldom changes. Lint and all other presets compile without it, so that
# no source lives on what it does not include.
set(LOADLINE_PRECOMPILED
  <algorithm> <cstdint> <functional> <map> <memory> <optional> <set> <span> <string> <string_view> <utility> <vector>
  <absl/container/btree_map.h> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
  <absl/container/inlined_vector.h> <absl/numeric/int128.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
  <absl/strings/str_format.h> <absl/strings/str_join.h> <absl/strings/str_split.h> <absl/types/span.h>
  <google/protobuf/extension_set.h> <google/protobuf/generated_message_util.h> <google/protobuf/map_entry_lite.h>
  <google/protobuf/map_field_lite.h> <google/protobuf/message_lite.h> <google/protobuf/repeated_field.h>)

# loadline_precompile(TARGET HEADER...): where LOADLINE_FAST_BUILD is set.
function(loadline_precompile target)
  if(LOADLINE_FAST_BUILD)
    target_precompile_headers(${target} PRIVATE ${LOADLINE_PRECOMPILED} ${ARGN})
  endif()
endfunction()

# loadline_library(TARGET DIR DEPENDENCY...): a static library of all sources in DIR.
function(loadline_library target dir)
  loadline_sources(sources ${dir})
  add_library(${target} STATIC ${sources})
  target_link_libraries(${target} PUBLIC ${ARGN} PRIVATE loadline_compiler)
  if(NOT LOADLINE_FAST_BUILD)
    return()
  elseif(TARGET loadline_base AND NOT target STREQUAL loadline_base)
    target_precompile_headers(${target} REUSE_FROM loadline_base)
  else()
    loadline_precompile(${target})
  endif()
endfunction()
