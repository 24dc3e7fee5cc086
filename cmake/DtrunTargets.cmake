# dtrun_core_library(base|rank|launch DEPS target ...): one of the three libraries of core, compiled in units of about 24 files:
# most of a unit's time is its headers. launch waits for the kernel and the network and needs -O1 only, which compiles a quarter
# faster. base and launch check indices in the C++ library.
function(dtrun_core_library name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  set(target dtrun_${name})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled/${name}.cc CONTENT "")  # CMake wants a source to begin with
  add_library(${target} STATIC ${CMAKE_BINARY_DIR}/precompiled/${name}.cc)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 24)
  target_link_libraries(${target} PRIVATE dtrun_build PUBLIC ${ARG_DEPS})
  if(name STREQUAL "rank")
    set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)  # a unit for each folder: they have names in common
  else()
    dtrun_asserts(${target})
    if(name STREQUAL "launch")
      dtrun_supervises(${target})
    endif()
    if(DTRUN_UNITY)  # with the same options
      target_link_libraries(${target} PRIVATE ${DTRUN_PRECOMPILED})
      target_precompile_headers(${target} REUSE_FROM dtrun_${name}_headers)
    endif()
  endif()
endfunction()

# dtrun_library(NAME IN base|rank|launch SOURCES a.cc ... [ALONE b.cc ...] [TESTS a_test.cc ...] [TEST_DEPS target ...])
#
# The sources of a folder, which go into one of the three libraries, and its unit tests: the program and test NAME_test.
# ALONE: compiled by itself, because its headers do not go with others.
function(dtrun_library name)
  cmake_parse_arguments(ARG "" "IN" "SOURCES;ALONE;TESTS;TEST_DEPS" ${ARGN})
  set(sources ${ARG_SOURCES} ${ARG_ALONE})
  list(TRANSFORM sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  target_sources(dtrun_${ARG_IN} PRIVATE ${sources})
  set_source_files_properties(${sources} TARGET_DIRECTORY dtrun_${ARG_IN} PROPERTIES UNITY_GROUP ${name})
  foreach(source IN LISTS ARG_ALONE)
    set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/${source} TARGET_DIRECTORY dtrun_${ARG_IN}
                                PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  endforeach()
  if(DTRUN_TESTS AND ARG_TESTS)
    dtrun_unit_test(${name}_test SOURCES ${ARG_TESTS} DEPS ${ARG_TEST_DEPS} dtrun_${ARG_IN})
    if(DTRUN_UNITY)
      target_link_libraries(${name}_test PRIVATE ${DTRUN_PRECOMPILED} dtrun_base)  # which has Asio
      target_precompile_headers(${name}_test REUSE_FROM dtrun_test_headers)
    endif()
  endif()
endfunction()

# dtrun_precompiled(NAME FILE [UNIT_TESTS] DEPS target ...): what most files of core include, or of its tests, compiled
# once. Not without DTRUN_UNITY, so that tools which look at files one by one see what each of them includes.
function(dtrun_precompiled name file)
  cmake_parse_arguments(ARG "UNIT_TESTS" "" "DEPS" ${ARGN})
  set(source ${CMAKE_BINARY_DIR}/precompiled/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  if(ARG_UNIT_TESTS)
    file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}")
    add_executable(${name} EXCLUDE_FROM_ALL ${source})  # compiled with -fPIE, as its users are
    target_compile_options(${name} PRIVATE "$<$<CONFIG:Release>:SHELL:-O0 -U_FORTIFY_SOURCE>")
    target_link_libraries(${name} PRIVATE dtrun_base)  # Asio
  else()
    add_library(${name} OBJECT EXCLUDE_FROM_ALL ${source})
    dtrun_asserts(${name})
    if(name STREQUAL "dtrun_launch_headers")
      dtrun_supervises(${name})
    endif()
  endif()
  target_link_libraries(${name} PRIVATE dtrun_build ${ARG_DEPS})
  target_precompile_headers(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/cmake/${file}>)
endfunction()

# dtrun_supervises(target): it waits for the kernel and the network and moves no data of ranks; -O1 builds it a quarter
# faster.
function(dtrun_supervises target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# dtrun_asserts(target): the C++ library checks indices and the like, and aborts. Not where ranks wait for each call: it is a
# tenth of the time of a small collective operation.
function(dtrun_asserts target)
  target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:_GLIBCXX_ASSERTIONS>)
endfunction()

# dtrun_unit_test(NAME [ONE_THREAD] [SUITE full|smoke] SOURCES ... DEPS ...): a GoogleTest program, and the test NAME that runs
# it: one process for all its cases. What it tests is optimised, itself it is not: matchers build in half the time so.
# ONE_THREAD: OpenMP and BLAS start no others, as in a rank; they would spin. SUITE: the program has the conformance suite;
# smoke: the cases of DTRUN_REST_OF_SUITE are a test of their own, NAME.rest, which runs nightly.
function(dtrun_unit_test name)
  cmake_parse_arguments(ARG "ONE_THREAD" "SUITE" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE dtrun_build ${ARG_DEPS} GTest::gmock GTest::gtest_main Threads::Threads)
  target_compile_options(${name} PRIVATE "$<$<CONFIG:Release>:SHELL:-O0 -U_FORTIFY_SOURCE>")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(environment)
  if(ARG_ONE_THREAD)
    set(environment ENVIRONMENT OMP_NUM_THREADS=1)
  endif()
  if(NOT ARG_SUITE)
    dtrun_cases(${name} fast ${name} "*")
  elseif(ARG_SUITE STREQUAL "smoke")
    dtrun_cases(${name} fast ${name} "*-${DTRUN_REST_OF_SUITE}")
    dtrun_cases(${name}.rest nightly ${name} "${DTRUN_REST_OF_SUITE}")
  else()  # the largest buffers alone: they take most of a machine's memory
    dtrun_cases(${name} fast ${name} "*-${DTRUN_LARGE_CASES}")
    dtrun_cases(${name}.large fast ${name} "${DTRUN_LARGE_CASES}")
  endif()
endfunction()
set(DTRUN_LARGE_CASES "Sizes.*:Messages.OfMoreThanTwoGibibytesArrive")
# What a smoke leaves out: worlds that differ in size alone, long waits, and cases that conformance_kit runs on each plugin.
string(CONCAT DTRUN_REST_OF_SUITE "${DTRUN_LARGE_CASES}:Load.*:Structs.*:Plugin.HasA*:Plugin.Offers*:Plugin.Says*:Plugin.Needs*"
  ":Capabilities.MakeSense:Capabilities.AreKnown:Capabilities.HoldForTheLargestBuffer"
  ":Collectives.*InWorld1:Collectives.*InWorld2:Collectives.*InWorld4"
  ":Collectives.B*InWorld7:Collectives.Gather*InWorld7:Collectives.Reduce*InWorld7:Collectives.Scatter*InWorld7:Sequences.*World1:Sequences.*World2:Sequences.*World4:Sequences.*World7"
  ":Collectives.*vInWorld7:Collectives.A*toall*InWorld7:Sequences.*World5:Sequences.OfManySmallCalls:Messages.OfManySmallCalls*"
  ":Requests.FinishBeforeReleaseReturns:Messages.ThatAreComplete*:Messages.ReachARankThatWasStopped"
  ":Failures.KeepTheDeadlineOfAQueuedCall:Failures.EndABlockingCall*:Faults.*")
set(DTRUN_PROGRAM_TIMEOUT_S 600)
if(DTRUN_SANITIZE)  # conformance_kit does not run then
  set(DTRUN_REST_OF_SUITE "${DTRUN_LARGE_CASES}")
  set(DTRUN_PROGRAM_TIMEOUT_S 2400)
endif()

# The test `test` runs those cases of a GoogleTest program that the filter selects.
function(dtrun_cases test label program filter)
  add_test(NAME ${test} COMMAND ${program} --gtest_filter=${filter})
  # It is skipped if all its cases skipped themselves. Where cases failed, their list ends the output.
  set_tests_properties(${test} PROPERTIES TIMEOUT ${DTRUN_PROGRAM_TIMEOUT_S} LABELS ${label} ${environment}
    SKIP_REGULAR_EXPRESSION "PASSED  . 0 tests.\n(.  SKIPPED . [^\n]*\n)+$")
  if(ARG_SUITE)  # begin early: they take a minute
    set_tests_properties(${test} PROPERTIES COST 300)
  endif()
  if(filter MATCHES "^Sizes")
    set_tests_properties(${test} PROPERTIES RESOURCE_LOCK memory)
  endif()
endfunction()

# dtrun_uninstrumented(target ...): programs that load libraries which the thread sanitizer has not seen compiled.
function(dtrun_uninstrumented)
  if(DTRUN_SANITIZE MATCHES "thread")
    foreach(target IN LISTS ARGN)
      target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/programs/tsan_suppressions.cc)
    endforeach()
  endif()
endfunction()

# dtrun_feature(NAME STATE TEXT): a line of the summary that ends the configuration.
function(dtrun_feature name state text)
  set_property(GLOBAL APPEND_STRING PROPERTY DTRUN_FEATURES "\n--   ${name}: ${state} (${text})")
endfunction()

function(dtrun_print_summary)
  get_property(features GLOBAL PROPERTY DTRUN_FEATURES)
  message(STATUS "dtrun ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}${DTRUN_SANITIZE}${features}")
endfunction()
