# loadline_proto_library(TARGET ROOT FILE...): a static library of the C++ messages of FILEs below ROOT. Headers
# are included as system headers by their path below ROOT, such as "loadline/v1/cluster_state.pb.h".
#
# CMake's own protobuf_generate() mirrors paths relative to the calling directory and does not follow imports;
# protoc writes the imports of each file, and Ninja reads them.
function(loadline_proto_library target root)
  set(out ${PROJECT_BINARY_DIR}/gen)
  file(MAKE_DIRECTORY ${out})
  set(sources)
  set(headers)
  foreach(proto IN LISTS ARGN)
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    set(generated ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
    add_custom_command(
      OUTPUT ${generated}
      COMMAND protobuf::protoc --cpp_out=${out} --dependency_out=${out}/${stem}.d -I ${root} ${root}/${proto}
      DEPENDS ${root}/${proto} protobuf::protoc
      DEPFILE ${out}/${stem}.d
      COMMENT "protoc ${proto}"
      VERBATIM)
    list(APPEND sources ${generated})
    list(APPEND headers ${out}/${stem}.pb.h)
  endforeach()
  add_custom_target(${target}_headers DEPENDS ${headers})  # for tools that read sources without building

  add_library(${target} STATIC ${sources})
  target_include_directories(${target} SYSTEM PUBLIC ${out})
  # Not libprotobuf-lite: gRPC's headers bring the full runtime, and one process should hold one of the two.
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf)
  # The parsers gain little from -O2 and cost most of a full build.
  target_compile_options(${target} PRIVATE -w -O1)
endfunction()

# loadline_descriptors(VAR ROOT NAME FUNCTION FILE...): VAR is a C++ source that defines FUNCTION() of
# plugin/convert/NAME.h: what protoc says of FILEs below ROOT. The lite runtime does not have that.
function(loadline_descriptors var root name function)
  set(set ${PROJECT_BINARY_DIR}/gen/${name}.pb)
  set(source ${PROJECT_BINARY_DIR}/gen/${name}.cc)
  list(TRANSFORM ARGN PREPEND ${root}/ OUTPUT_VARIABLE files)
  add_custom_command(
    OUTPUT ${set}
    COMMAND protobuf::protoc --descriptor_set_out=${set} -I ${root} ${files}
    DEPENDS ${files} protobuf::protoc
    COMMENT "protoc ${name}.pb"
    VERBATIM)
  set(embed ${PROJECT_SOURCE_DIR}/cmake/EmbedFile.cmake)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -D FROM=${set} -D TO=${source} -D HEADER=plugin/convert/${name}.h
      -D FUNCTION=${function} -P ${embed}
    DEPENDS ${set} ${embed}
    VERBATIM)
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  set(${var} ${source} PARENT_SCOPE)
endfunction()
