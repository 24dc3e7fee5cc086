# Makes the plugin's own Gloo: ORIGINAL is the distribution's libgloo, COPY the renamed copy.
#
# Every C++ name of Gloo holds "4gloo" (its namespace, mangled). "4glpN" has the same
# length and, because 'o','o' -> 'p','N' adds 33 - 33 to h * 33 + c, the same GNU hash, so
# the copy's symbol table stays valid. See docs/decisions/002-private-gloo.md.
#
#   cmake -DORIGINAL=... -DCOPY=... -DSED=... -DREADELF=... -DNM=... -P private_gloo.cmake
foreach(variable ORIGINAL COPY SED READELF NM)
  if(NOT ${variable})
    message(FATAL_ERROR "private_gloo.cmake: ${variable} is not set")
  endif()
endforeach()

# The environment's output of a command; a failing command ends the script.
function(run output)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${ARGN} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${SED} -e "s/4gloo/4glpN/g; s/libgloo\\.so/libglpN.so/g; s/\\x00bind\\x00/\\x00glpb\\x00/; s/\\x00close\\x00/\\x00glpcl\\x00/"
                        ${ORIGINAL}
                OUTPUT_FILE ${COPY}.new COMMAND_ERROR_IS_FATAL ANY)

# A SysV hash table would hold hashes that the renaming changes.
run(dynamic ${READELF} --dynamic --wide ${COPY}.new)
if(NOT dynamic MATCHES "\\(GNU_HASH\\)" OR dynamic MATCHES "\\(HASH\\)")
  message(FATAL_ERROR "${ORIGINAL}: expected a GNU hash table and no SysV one; the renamed copy would not resolve. "
                      "See docs/decisions/002-private-gloo.md")
endif()
if(NOT dynamic MATCHES "soname: \\[libglpN\\.so")
  message(FATAL_ERROR "${ORIGINAL}: the copy's soname was not renamed")
endif()

run(symbols ${NM} --dynamic --defined-only ${COPY}.new)
string(REGEX MATCHALL "4gloo" left "${symbols}")
string(REGEX MATCHALL "4glpN" renamed "${symbols}")
list(LENGTH left left_count)
list(LENGTH renamed renamed_count)
if(left_count GREATER 0 OR renamed_count EQUAL 0)
  message(FATAL_ERROR "${ORIGINAL}: ${renamed_count} names of Gloo renamed, ${left_count} left; this is not a Gloo we know")
endif()
# bind(2) and close(2), of which libglpH.so.0 has its own (hooks.cc). The name of an undefined symbol is in no
# hash table.
run(undefined ${NM} --dynamic --undefined-only ${COPY}.new)
foreach(names "bind glpb" "close glpcl")
  separate_arguments(names)
  list(GET names 0 old)
  list(GET names 1 new)
  if(NOT undefined MATCHES " ${new}" OR undefined MATCHES " ${old}[@\n]")
    message(FATAL_ERROR "${ORIGINAL}: its call of ${old}(2) was not renamed; this is not a Gloo we know")
  endif()
endforeach()
file(RENAME ${COPY}.new ${COPY})
