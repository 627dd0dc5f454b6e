# loadline_sources(VAR DIR...): the sources right in each DIR, tests apart. A new file needs no line in CMake.
function(loadline_sources var)
  set(patterns)
  foreach(dir IN LISTS ARGN)
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/${dir}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(${var} ${sources} PARENT_SCOPE)
endfunction()

# loadline_library(TARGET DIR DEPENDENCY...): a static library of all sources in DIR.
function(loadline_library target dir)
  loadline_sources(sources ${dir})
  add_library(${target} STATIC ${sources})
  target_link_libraries(${target} PUBLIC ${ARGN} PRIVATE loadline_compiler)
endfunction()
