# Fails, and removes the file, unless a plugin is fit to live beside other libraries: it exports its entry only,
# nothing survives as a unique symbol, it is marked NODELETE, and links neither torch nor dtrun itself, nor two C++
# libraries.
#
#   cmake -DREADELF=readelf -DPLUGIN=libdtrun_backend_x.so -P audit_plugin.cmake
cmake_minimum_required(VERSION 3.16)

function(read_elf out)
  execute_process(COMMAND ${READELF} -W ${ARGN} ${PLUGIN} OUTPUT_VARIABLE text ERROR_VARIABLE problem
                  RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "audit of '${PLUGIN}': '${READELF} ${ARGN}' failed: ${problem}")
  endif()
  string(REGEX REPLACE "[][;]" " " text "${text}") # a list of lines must not contain list syntax
  string(REPLACE "\n" ";" lines "${text}")
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()

set(exported "")
set(problems "")
read_elf(symbols --dyn-syms)
foreach(line IN LISTS symbols)
  # Num: Value Size Type Bind Vis Ndx Name
  if(line MATCHES "^ *[0-9]+: [0-9a-f]+ +[0-9a-fx]+ +[A-Z_]+ +([A-Z]+) +[A-Z]+ .* ([0-9]+|ABS|COM) +([^ ]+)"
     OR line MATCHES "^ *[0-9]+: [0-9a-f]+ +[0-9a-fx]+ +[A-Z_]+ +([A-Z]+) +[A-Z]+ +([0-9]+|ABS|COM) +([^ ]+)")
    if(NOT CMAKE_MATCH_1 STREQUAL "LOCAL")
      list(APPEND exported "${CMAKE_MATCH_3}")
    endif()
    if(CMAKE_MATCH_1 STREQUAL "UNIQUE")
      string(APPEND problems "\n  symbol '${CMAKE_MATCH_3}' is unique in the process; compile with -fno-gnu-unique")
    endif()
  endif()
endforeach()
# An entry for this major of the ABI, and for others that it serves too.
set(foreign ${exported})
list(FILTER foreign EXCLUDE REGEX "^dtrun_plugin_entry_v[0-9]+$")
if(foreign OR NOT "dtrun_plugin_entry_v1" IN_LIST exported)
  list(JOIN exported "', '" names)
  string(APPEND problems "\n  it exports '${names}', must export exactly 'dtrun_plugin_entry_v1' (and entries of other majors)")
endif()

read_elf(dynamic -d)
set(nodelete FALSE)
set(runtimes "")
foreach(line IN LISTS dynamic)
  if(line MATCHES "\\(FLAGS_1\\).*NODELETE")
    set(nodelete TRUE)
  elseif(line MATCHES "\\(NEEDED\\).* (lib(torch|c10|dtrun)[^ ]*)")
    string(APPEND problems "\n  it links '${CMAKE_MATCH_1}'; a plugin sees dtrun through the C ABI only")
  elseif(line MATCHES "\\(NEEDED\\).* (lib(std)?c\\+\\+\\.so[^ ]*)")
    list(APPEND runtimes ${CMAKE_MATCH_1})
  endif()
endforeach()
list(LENGTH runtimes count)
if(count GREATER 1)
  list(JOIN runtimes "' and '" names)
  string(APPEND problems "\n  it links '${names}'; build all of it with one C++ library")
endif()
if(NOT nodelete)
  string(APPEND problems "\n  it is not marked NODELETE; link with -Wl,-z,nodelete")
endif()

if(problems)
  file(REMOVE ${PLUGIN})
  message(FATAL_ERROR "'${PLUGIN}' is not a fit plugin and was removed:${problems}")
endif()
