# Finds libtorch and makes the target dtrun_torch: its headers as system headers, so that
# our warnings stay ours, and its libraries. Without it the target does not exist.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
find_package(Torch QUIET)
if(NOT Torch_FOUND)
  dtrun_feature(torch off "libtorch not found: no dtrun-train; install libtorch-dev or set CMAKE_PREFIX_PATH")
  return()
endif()
# Not TORCH_LIBRARIES: in a wheel it names whatever libc10 the system has.
add_library(dtrun_torch INTERFACE)
target_link_libraries(dtrun_torch INTERFACE torch c10)
target_include_directories(dtrun_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
separate_arguments(DTRUN_TORCH_FLAGS UNIX_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(dtrun_torch INTERFACE ${DTRUN_TORCH_FLAGS})
dtrun_feature(torch on "libtorch ${Torch_VERSION}, ${TORCH_INSTALL_PREFIX}")
