# Installs the SDK into an empty folder and builds plugins against it, with nothing of the source tree in sight.
#
#   cmake -DBUILD=... -DSOURCE=... -DWORK=... -DGENERATOR=... -DCC=... -DCXX=... -P out_of_tree.cmake
file(REMOVE_RECURSE ${WORK})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "'${ARGN}' failed:\n${text}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/sdk --component sdk)
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE}/sdk/tests/out_of_tree -B ${WORK}/build
    -DCMAKE_PREFIX_PATH=${WORK}/sdk -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_BUILD_TYPE=Release -DDEMO=${SOURCE}/core/plugin/testing/demo.c
    -DNO_ENTRY=${SOURCE}/core/plugin/testing/no_entry.c)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CMAKE_COMMAND} --install ${WORK}/build --prefix ${WORK}/installed)
foreach(name launcher_in_cxx backend_in_c)
  if(NOT EXISTS ${WORK}/installed/lib/dtrun/plugins/libdtrun_${name}.so)
    message(FATAL_ERROR "libdtrun_${name}.so was not installed into lib/dtrun/plugins")
  endif()
endforeach()

execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build --target dtrun_backend_unfit
                RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(code EQUAL 0 OR NOT text MATCHES "must export exactly")
  message(FATAL_ERROR "a plugin without an entry passed the audit:\n${text}")
endif()
if(EXISTS ${WORK}/build/libdtrun_backend_unfit.so)
  message(FATAL_ERROR "the unfit plugin was left in place")
endif()

if(PKG_CONFIG)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${WORK}/sdk/lib/pkgconfig
                          ${PKG_CONFIG} --variable=plugindir dtrun-sdk OUTPUT_VARIABLE plugindir)
  if(NOT plugindir MATCHES "lib/dtrun/plugins")
    message(FATAL_ERROR "dtrun-sdk.pc says plugindir '${plugindir}'")
  endif()
endif()
