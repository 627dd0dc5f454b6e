# How our own code is compiled. `loadline_compiler` carries what generated code must not get: the warnings.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  if(LOADLINE_FAST_BUILD)  # what ccache asks for before it keeps what was compiled with a precompiled header
    list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros)
  endif()
endif()

add_library(loadline_compiler INTERFACE)
target_include_directories(loadline_compiler INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(loadline_compiler INTERFACE
  -Wall -Wextra -Werror
  -Wconversion -Wshadow -Wold-style-cast -Wnon-virtual-dtor -Woverloaded-virtual
  -Wformat=2 -Wimplicit-fallthrough -Wcast-qual -Wundef
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>  # what ABSL_GUARDED_BY says of locks
  -Wno-missing-field-initializers  # a designated initializer names what differs from the default
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>  # false alarms in abseil's inlined vector
  # A tenth to a fifth of GCC's time goes into collecting its garbage; this lets it hold a gigabyte of it first.
  $<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-expand=200 --param ggc-min-heapsize=1000000>
  $<$<CXX_COMPILER_ID:GNU>:-Wtrampolines -Wbidi-chars=any -Wduplicated-cond -Wlogical-op>)

# What is released names its sources by their place in the tree: equal sources give equal programs, wherever they lie.
# With CCACHE_BASEDIR ccache has written the paths relative to the build folder, where all is compiled.
file(RELATIVE_PATH LOADLINE_TREE_FROM_BUILD ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
file(RELATIVE_PATH LOADLINE_BUILD_FROM_TREE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
string(REGEX REPLACE "/$" "" LOADLINE_TREE_FROM_BUILD "${LOADLINE_TREE_FROM_BUILD}")
foreach(map ${PROJECT_SOURCE_DIR}=. ${LOADLINE_TREE_FROM_BUILD}/=./
    CMakeFiles/=./${LOADLINE_BUILD_FROM_TREE}/CMakeFiles/ gen/=./${LOADLINE_BUILD_FROM_TREE}/gen/)
  add_compile_options($<$<CONFIG:RelWithDebInfo>:-ffile-prefix-map=${map}>)
endforeach()

if(LOADLINE_SANITIZE)
  add_compile_options(-fsanitize=${LOADLINE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${LOADLINE_SANITIZE})
  if(LOADLINE_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
else()
  # What the OpenSSF compiler hardening guide asks for and both compilers of Debian 12 know.
  add_compile_options(
    -U_FORTIFY_SOURCE
    $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3>
    -D_GLIBCXX_ASSERTIONS
    -Werror=format-security
    -fstack-clash-protection -fstack-protector-strong
    $<IF:$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},aarch64>,-mbranch-protection=standard,-fcf-protection=full>
    -fno-delete-null-pointer-checks -fno-strict-overflow -fno-strict-aliasing
    $<$<CXX_COMPILER_ID:GNU>:-ftrivial-auto-var-init=zero>)
  add_link_options(
    -Wl,-z,noexecstack -Wl,-z,relro -Wl,-z,now -Wl,--as-needed -Wl,--no-copy-dt-needed-entries)
endif()
