# dtrun_add_plugin(NAME name KIND backend|launcher|device SOURCES a.cc ...
#                  [LIBRARIES target ...] [OUTPUT_DIRECTORY folder] [NO_INSTALL] [COMPONENT name])
#
# A plugin as the loader wants it: one shared object libdtrun_<kind>_<name>.so ('-' in a name is written '_'
# in the file) that exports only its entry point and is audited after every link. The target is
# dtrun_<kind>_<name>; add definitions and include folders with the usual target_* commands. LIBRARIES are
# linked privately; those installed beside the plugin are found there. COMPONENT: of install().
#
# The same function serves dtrun's own plugins and those built from the installed package (dtrun::sdk).
set(DTRUN_PLUGIN_CMAKE_DIR ${CMAKE_CURRENT_LIST_DIR})

function(dtrun_add_plugin)
  cmake_parse_arguments(ARG "NO_INSTALL" "NAME;KIND;OUTPUT_DIRECTORY;COMPONENT" "SOURCES;LIBRARIES" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "dtrun_add_plugin: unknown argument '${ARG_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT ARG_KIND MATCHES "^(backend|launcher|device)$")
    message(FATAL_ERROR "dtrun_add_plugin: KIND is '${ARG_KIND}', must be backend, launcher or device")
  endif()
  string(LENGTH "${ARG_NAME}" length)
  if(NOT ARG_NAME MATCHES "^[a-z][a-z0-9_-]*$" OR length GREATER 32)
    message(FATAL_ERROR "dtrun_add_plugin: NAME '${ARG_NAME}' must match [a-z][a-z0-9_-]{0,31}")
  endif()
  string(REPLACE "-" "_" file_name ${ARG_NAME})
  set(target dtrun_${ARG_KIND}_${file_name})

  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE dtrun::sdk ${ARG_LIBRARIES})
  if(TARGET dtrun_build) # dtrun's own tree: its warnings, not its include folders
    target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:dtrun_build,INTERFACE_COMPILE_OPTIONS>)
    target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:dtrun_build,INTERFACE_COMPILE_DEFINITIONS>)
    # CMake ends a path of the build with ':', the current folder.
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  endif()

  if(NOT CMAKE_CXX_STANDARD)
    set_target_properties(${target} PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
  endif()
  set_target_properties(${target} PROPERTIES
    PREFIX lib
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    BUILD_RPATH "$ORIGIN"
    INSTALL_RPATH "$ORIGIN"
    LINK_DEPENDS ${DTRUN_PLUGIN_CMAKE_DIR}/plugin.map)
  target_compile_options(${target} PRIVATE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fno-gnu-unique>)
  target_link_options(${target} PRIVATE
    -Wl,--version-script=${DTRUN_PLUGIN_CMAKE_DIR}/plugin.map -Wl,-z,nodelete -Wl,--exclude-libs,ALL)
  get_property(several GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(NOT several AND NOT CMAKE_BUILD_TYPE AND NOT " ${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS}" MATCHES " -O")
    target_compile_options(${target} PRIVATE -O2) # without a build type a compiler does not optimise
  endif()
  # The sanitizers' runtime is in the executable only, so their symbols stay undefined here.
  if(NOT DTRUN_SANITIZE AND NOT "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize")
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()

  if(ARG_OUTPUT_DIRECTORY)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${ARG_OUTPUT_DIRECTORY})
  elseif(DTRUN_PLUGIN_OUTPUT_DIRECTORY)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${DTRUN_PLUGIN_OUTPUT_DIRECTORY})
  endif()
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -DREADELF=${CMAKE_READELF} -DPLUGIN=$<TARGET_FILE:${target}>
            -P ${DTRUN_PLUGIN_CMAKE_DIR}/audit_plugin.cmake
    VERBATIM)
  if(NOT ARG_NO_INSTALL)
    set(component)
    if(ARG_COMPONENT)
      set(component COMPONENT ${ARG_COMPONENT})
    endif()
    install(TARGETS ${target} LIBRARY DESTINATION lib/dtrun/plugins ${component})
  endif()
endfunction()

# dtrun_add_rust_plugin(NAME name KIND backend|launcher|device SOURCES main.rs other.rs ...)
#
# The same from Rust, without a crate, by rustc 1.63 or later. A panic ends the rank: it must not unwind into the host.
function(dtrun_add_rust_plugin)
  cmake_parse_arguments(ARG "" "NAME;KIND" "SOURCES" ${ARGN})
  find_program(RUSTC rustc REQUIRED)
  string(REPLACE "-" "_" target dtrun_${ARG_KIND}_${ARG_NAME})
  list(GET ARG_SOURCES 0 main)
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(plugin ${CMAKE_CURRENT_BINARY_DIR}/lib${target}.so)
  add_custom_command(OUTPUT ${plugin}
    COMMAND ${CMAKE_COMMAND} -E env DTRUN_INCLUDE=${dtrun-sdk_INCLUDE_DIR} ${RUSTC} --edition 2021 --crate-type cdylib
            --crate-name ${target} -C opt-level=2 -C panic=abort -C link-arg=-Wl,-z,nodelete -o ${plugin}
            ${CMAKE_CURRENT_SOURCE_DIR}/${main}
    COMMAND ${CMAKE_COMMAND} -DREADELF=${CMAKE_READELF} -DPLUGIN=${plugin} -P ${DTRUN_PLUGIN_CMAKE_DIR}/audit_plugin.cmake
    DEPENDS ${ARG_SOURCES} ${dtrun-sdk_INCLUDE_DIR}/dtrun/dtrun_abi.rs VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${plugin})
  install(FILES ${plugin} DESTINATION lib/dtrun/plugins)
endfunction()
