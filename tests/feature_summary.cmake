# What a machine lacks is named in the summary, whatever its text holds.
include(${CMAKE_CURRENT_LIST_DIR}/../cmake/DtrunTargets.cmake)
dtrun_feature(gloo "on" "Gloo")
dtrun_feature(mpi "off" "no MPI found; install libopenmpi-dev")
dtrun_print_summary()
