# dtrun_library(NAME SOURCES a.cc ... [TESTS a_test.cc ...] [DEPS target ...])
#
# A static library dtrun_NAME of core, with its unit tests in one program NAME_test whose
# cases ctest lists one by one.
function(dtrun_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;DEPS;TEST_DEPS" ${ARGN})
  add_library(dtrun_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(dtrun_${name} PRIVATE dtrun_build PUBLIC ${ARG_DEPS})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT folder MATCHES "^(core/(base|contract|comm)|tools/bench/program)")
    dtrun_supervises(dtrun_${name})
    if(DTRUN_UNITY)  # with the same definitions
      target_link_libraries(dtrun_${name} PRIVATE ${DTRUN_PRECOMPILED})
      target_precompile_headers(dtrun_${name} REUSE_FROM dtrun_core_headers)
    endif()
  endif()
  if(DTRUN_TESTS AND ARG_TESTS)
    dtrun_unit_test(${name}_test SOURCES ${ARG_TESTS} DEPS dtrun_${name} ${ARG_TEST_DEPS})
    if(DTRUN_UNITY)
      target_link_libraries(${name}_test PRIVATE ${DTRUN_PRECOMPILED})
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
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  else()
    add_library(${name} OBJECT EXCLUDE_FROM_ALL ${source})
    dtrun_supervises(${name})
  endif()
  target_link_libraries(${name} PRIVATE dtrun_build ${ARG_DEPS})
  target_precompile_headers(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/cmake/${file}>)
endfunction()

# dtrun_supervises(target): it waits for the kernel and the network and moves no data of ranks; -O1 builds it a quarter
# faster.
function(dtrun_supervises target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# dtrun_unit_test(NAME SOURCES ... DEPS ...): a GoogleTest program. What it tests is optimised, itself it is not: matchers
# build in half the time so.
function(dtrun_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE dtrun_build ${ARG_DEPS} GTest::gmock GTest::gtest_main Threads::Threads)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  include(GoogleTest)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX ${name}. PROPERTIES TIMEOUT 600)
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
  set_property(GLOBAL APPEND PROPERTY DTRUN_FEATURES "${name}|${state}|${text}")
endfunction()

function(dtrun_print_summary)
  get_property(features GLOBAL PROPERTY DTRUN_FEATURES)
  message(STATUS "dtrun ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}${DTRUN_SANITIZE}")
  foreach(feature IN LISTS features)
    string(REPLACE "|" ";" parts "${feature}")
    list(GET parts 0 name)
    list(GET parts 1 state)
    list(GET parts 2 text)
    message(STATUS "  ${name}: ${state} (${text})")
  endforeach()
endfunction()
