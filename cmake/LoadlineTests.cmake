find_package(GTest 1.12 CONFIG REQUIRED)
find_package(benchmark 1.7 CONFIG REQUIRED)
find_package(rapidcheck CONFIG REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# What every test sees. Property tests draw from this seed; another one can be given by hand.
set(LOADLINE_TEST_ENVIRONMENT
  "RC_PARAMS=seed=20260217"
  "LOADLINE_LIBRARY=${PROJECT_BINARY_DIR}/lib/libloadline.so"
  "LOADLINED=${PROJECT_BINARY_DIR}/bin/loadlined"
  "UBSAN_OPTIONS=print_stacktrace=1"
  "TSAN_OPTIONS=ignore_noninstrumented_modules=1:suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")

# loadline_test_sources(VAR PATTERN...): files below test/ that match, at any depth.
function(loadline_test_sources var)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/test/)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${ARGN})
  set(${var} ${sources} PARENT_SCOPE)
endfunction()

# loadline_add_test(NAME COMMAND...): one line of ctest.
function(loadline_add_test name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${LOADLINE_TEST_ENVIRONMENT}")
endfunction()

# The macro that instantiates a parameterized test has a parameter "info", and so has every lambda that names its
# cases. Linked behind loadline_compiler, since the last word counts.
add_library(loadline_gtest_compiler INTERFACE)
target_compile_options(loadline_gtest_compiler INTERFACE -Wno-shadow)
if(LOADLINE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC no longer sees how large a vector is: false alarms of several warnings about bounds.
  target_compile_options(loadline_gtest_compiler INTERFACE -Wno-error)
endif()

# What ends all of them when a check fails.
set(LOADLINE_ABORT_ON_FAILED_CHECK ${PROJECT_SOURCE_DIR}/test/testing/abort_on_failed_check.cc)

# Few and big binaries: gtest and the message headers dominate the cost of a small one.
function(loadline_gtest name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  loadline_test_sources(sources ${arg_SOURCES})
  add_executable(${name} ${sources})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test UNITY_BUILD_BATCH_SIZE 18)
  target_link_libraries(${name} PRIVATE
    ${arg_LIBRARIES} rapidcheck_gtest GTest::gmock_main loadline_compiler loadline_gtest_compiler)
  loadline_precompile(${name} <gmock/gmock.h> <gtest/gtest.h> <random>)
  # What is tested is compiled as it is shipped. The tests themselves are half of all that is to be compiled, and this
  # takes two fifths off their time.
  target_compile_options(${name} PRIVATE -g1 $<IF:$<BOOL:${LOADLINE_FAST_BUILD}>,-O0,-O1>)
  loadline_add_test(${name} ${name})
endfunction()

if(NOT LOADLINE_FUZZ)
  loadline_gtest(core_test
    SOURCES core/*_test.cc core/drain/naive_*.cc sim/random_*.cc testing/*.cc
    LIBRARIES loadline_fit loadline_score loadline_expand loadline_size loadline_slack loadline_drain
      loadline_removal loadline_observe loadline_consolidate loadline_loop loadline_sim)
  if(LOADLINE_SANITIZE STREQUAL "thread")  # all else of core/ starts no threads, and shares nothing
    loadline_add_test(core_threads core_test --gtest_filter=ResourceNamesTest.*)
  endif()
  loadline_gtest(plugin_test
    SOURCES plugin/*.cc testing/*.cc
    LIBRARIES loadline_service loadline_daemon)
  add_dependencies(plugin_test loadlined)
  loadline_gtest(hostile_test
    SOURCES hostile/*.cc plugin/messages.cc plugin/score_messages.cc testing/*.cc
    LIBRARIES loadline_service loadline_daemon)
  add_dependencies(hostile_test loadlined)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/test/plugin/corpus_test.cc PROPERTIES
    COMPILE_DEFINITIONS LOADLINE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

  # --- Simulated clusters: `make simulate SEEDS=N`, and some seeds in each run. ------------------------------------
  loadline_test_sources(simulate_sources sim/*.cc)
  add_executable(simulate_seeds ${simulate_sources} ${LOADLINE_ABORT_ON_FAILED_CHECK})
  set_target_properties(simulate_seeds PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  target_link_libraries(simulate_seeds PRIVATE loadline_sim loadline_compiler)
  loadline_add_test(simulate simulate_seeds 100)

  # --- Rows of expected decisions. A file joins the list with the issue that answers its rows. -------------------
  set(vector_files
    drain_actuation drain_budgets drain_eligibility drain_hints drain_lists drain_pdb drain_planner drain_pods
    drain_removal drain_rules drain_select drain_utilisation
    escalator_actions escalator_decide escalator_inputs escalator_math estimator
    expander gce_price limit_score pod_limits price_ranking price_terms scheduler_wire slack_loop slack_size)
  loadline_sources(vectors_sources test/vectors)
  add_executable(run_vectors ${vectors_sources} ${LOADLINE_ABORT_ON_FAILED_CHECK})
  set_target_properties(run_vectors PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/vectors)
  target_compile_definitions(run_vectors PRIVATE LOADLINE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(run_vectors PRIVATE loadline_convert nlohmann_json::nlohmann_json loadline_compiler)
  list(TRANSFORM vector_files REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/test/vectors/data/\\1.jsonl")
  loadline_add_test(vectors run_vectors --overruled=6 ${vector_files})
  loadline_add_test(vectors_can_fail Python3::Interpreter test/vectors/run_vectors_test.py $<TARGET_FILE:run_vectors>)

  # --- core/pack against a solver, which tools/deps.sh puts into build/highs. -------------------------------------
  add_executable(pack_answers ${PROJECT_SOURCE_DIR}/test/oracle/pack_answers.cc)
  set_target_properties(pack_answers PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/oracle)
  target_link_libraries(pack_answers PRIVATE loadline_pack nlohmann_json::nlohmann_json loadline_compiler)
  loadline_add_test(pack_oracle ${PROJECT_SOURCE_DIR}/test/oracle/run.sh pack_oracle $<TARGET_FILE:pack_answers>)
  add_executable(consolidate_answers ${PROJECT_SOURCE_DIR}/test/oracle/consolidate_answers.cc)
  set_target_properties(consolidate_answers PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/oracle)
  target_link_libraries(consolidate_answers PRIVATE
    loadline_consolidate nlohmann_json::nlohmann_json loadline_compiler)
  loadline_add_test(consolidate_oracle
    ${PROJECT_SOURCE_DIR}/test/oracle/run.sh consolidate_oracle $<TARGET_FILE:consolidate_answers>)
  set_tests_properties(pack_oracle consolidate_oracle PROPERTIES SKIP_RETURN_CODE 77)

  # --- What is shipped, and the rules of the tree. --------------------------------------------------------------
  loadline_add_test(lint_test Python3::Interpreter test/lint/lint_test.py)
  if(NOT LOADLINE_SANITIZE)
    loadline_add_test(api_test Python3::Interpreter test/api/api_test.py)
    set_tests_properties(api_test PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900)
  endif()
  loadline_add_test(check_long_test Python3::Interpreter test/lint/check_long_test.py)
  if(NOT LOADLINE_SANITIZE)
    loadline_add_test(binaries_test Python3::Interpreter test/lint/binaries_test.py
      --cc ${CMAKE_C_COMPILER} --cxx ${CMAKE_CXX_COMPILER}
      --library $<TARGET_FILE:loadline> --daemon $<TARGET_FILE:loadlined>
      --paths $<IF:$<CONFIG:RelWithDebInfo>,released,any>)
  endif()

  # --- Benchmarks: one binary. ------------------------------------------------------------------------------------
  loadline_test_sources(bench_sources bench/*.cc core/drain/naive_*.cc plugin/simulated_*.cc
    sim/random_scenario.cc)
  if(NOT LOADLINE_SANITIZE)
    add_executable(bench EXCLUDE_FROM_ALL ${bench_sources} ${LOADLINE_ABORT_ON_FAILED_CHECK})
    set_target_properties(bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/bench)
    target_link_libraries(bench PRIVATE loadline_service loadline benchmark::benchmark_main loadline_compiler)
    # What growing costs: `make bench-cost`.
    loadline_test_sources(cost_sources cost/*.cc)
    add_executable(cost_bench EXCLUDE_FROM_ALL ${cost_sources} ${LOADLINE_ABORT_ON_FAILED_CHECK})
    set_target_properties(cost_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/cost)
    target_link_libraries(cost_bench PRIVATE loadline_expand loadline_compiler)
    # What pods cost that arrive one by one: `make bench-arrivals`.
    loadline_test_sources(arrivals_sources arrivals/*.cc cost/scenarios.cc)
    add_executable(arrivals_bench EXCLUDE_FROM_ALL ${arrivals_sources} ${LOADLINE_ABORT_ON_FAILED_CHECK})
    set_target_properties(arrivals_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/cost)
    target_link_libraries(arrivals_bench PRIVATE loadline_loop loadline_compiler)
    # How much real overload scores and lines leave: `make bench-overload`.
    loadline_test_sources(overload_sources overload/*.cc)
    add_executable(overload_bench EXCLUDE_FROM_ALL ${overload_sources} ${LOADLINE_ABORT_ON_FAILED_CHECK})
    set_target_properties(overload_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/overload)
    target_link_libraries(overload_bench PRIVATE loadline_score loadline_compiler)
  endif()
endif()

# --- Fuzz targets: libFuzzer in the fuzz preset, else a driver that runs the corpus as a test. -----------------
loadline_test_sources(fuzz_sources fuzz/*_fuzz.cc)
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" corpus ${name})
  add_executable(${name} ${source} ${LOADLINE_ABORT_ON_FAILED_CHECK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/fuzz)
  target_link_libraries(${name} PRIVATE loadline_service loadline_compiler)
  if(LOADLINE_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/test/fuzz/corpus_main.cc)
    loadline_add_test(${name} ${name} ${PROJECT_SOURCE_DIR}/test/fuzz/corpus/${corpus})
  endif()
endforeach()
