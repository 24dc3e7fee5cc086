# Language level, warnings, sanitizers, ccache and output folders, for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Hot loops live in kernels that say what they need; the rest builds a third faster at -O2.
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# The build tree has the shape of an installation, so that what finds plugins relative
# to a binary works in both.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(DTRUN_PLUGIN_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/dtrun/plugins)

# An installed program that links libdtrun. With another path for the build CMake would end that one with ':', so that
# every library was looked for in the current folder first.
function(dtrun_links_libdtrun target)
  set(places "$ORIGIN/../lib" "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")  # here; installed
  list(REMOVE_DUPLICATES places)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "${places}" BUILD_WITH_INSTALL_RPATH ON)
endfunction()

# A target's sources are compiled some at a time: most of a file's time is its headers. Names in unnamed namespaces are
# therefore unique in a library. Tools that look at files one by one (clang-tidy) configure with -DDTRUN_UNITY=OFF.
if(DTRUN_UNITY)
  set(CMAKE_UNITY_BUILD ON)
endif()
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)
if(DTRUN_UNITY)
  # gcc treats an included source as a header, and warns of classes with members of an unnamed namespace.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  # What its manual asks for where headers are precompiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)  # ccache's; always, so that flags are the same without it

# gcc looks for garbage too often in units of this size: 11 % of a unit's time, for 0.3 of 1.6 GB.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-expand=1000 --param ggc-min-heapsize=600000>")

# Hardening, of this tree alone: what compiles against the SDK chooses its own (docs/security.md). A flag that another
# processor's compiler lacks is left out.
include(CheckCXXCompilerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C CXX)
foreach(flag stack-protector-strong stack-clash-protection cf-protection)
  check_cxx_compiler_flag(-f${flag} DTRUN_COMPILER_HAS_${flag})
  if(DTRUN_COMPILER_HAS_${flag})
    add_compile_options(-f${flag})
  endif()
endforeach()
if(DTRUN_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  # Sanitizers do not see into the functions that _FORTIFY_SOURCE calls, and without optimisation there are none.
  add_compile_definitions($<$<COMPILE_LANGUAGE:CXX>:_GLIBCXX_ASSERTIONS>)  # else dtrun_asserts() says where
else()
  set(level 3)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    set(level 2)  # glibc's headers warn of a level that the compiler lacks
  endif()
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level})  # some distributions' compilers define it
endif()
add_link_options(LINKER:-z,relro,-z,now,-z,noexecstack)

add_library(dtrun_build INTERFACE)
target_compile_options(dtrun_build INTERFACE -Wall -Wextra -Wpedantic -Werror -fvisibility=hidden
                                             -fno-omit-frame-pointer)
# Not -Wshadow, which also finds names of the other files that a file is compiled with.
target_compile_options(dtrun_build INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wshadow=local>)
# Unused functions are not linked, above all those that would need OpenSSL functions (core/late opens OpenSSL at run time).
target_compile_options(dtrun_build INTERFACE -ffunction-sections)
target_link_options(dtrun_build INTERFACE -Wl,--gc-sections)
# gcc 12 warns of overlaps in std::string's operator+ that cannot be (GCC bug 105651).
target_compile_options(dtrun_build INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
target_include_directories(dtrun_build INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/sdk/include)
# Asio is compiled once, in core/base/asio.cc: a sixth of the time of each file that includes it.
# What JSON holds is asked for by type: that json converts to everything is tried at each call of any function that takes one.
target_compile_definitions(dtrun_build INTERFACE DTRUN_VERSION="${PROJECT_VERSION}" BOOST_ASIO_SEPARATE_COMPILATION
                                                 JSON_USE_IMPLICIT_CONVERSIONS=0)

if(DTRUN_SANITIZE)
  add_compile_options(-fsanitize=${DTRUN_SANITIZE} -fno-sanitize-recover=all -g)
  add_link_options(-fsanitize=${DTRUN_SANITIZE})
  # What sanitizers add misleads gcc's warnings about the flow of data, another one with each change: errors are those of the
  # other builds, which compile the same units.
  target_compile_options(dtrun_build INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-error>)
  if(DTRUN_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-tsan)  # Boost.Asio has fences, which gcc's thread sanitizer does not model
  endif()
endif()
