# What CPack's .deb packages are called, say and need. Libraries that are linked are found by dpkg-shlibdeps; named here are
# those that dtrun and its plugins open at run time.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENT_RUNTIME_GROUP dtrun)
set(CPACK_COMPONENT_DOCS_GROUP dtrun)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CPACK_DTRUN_LIBRARIES})
# Which package has libdtrun.so.1, and that the linker's cache is to be renewed: CPack would do it for plugins too, with warnings.
set(CPACK_DEBIAN_DTRUN_PACKAGE_CONTROL_EXTRA ${CPACK_DTRUN_SOURCE}/packaging/control/shlibs
                                             ${CPACK_DTRUN_SOURCE}/packaging/control/triggers)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(same "dtrun (= ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

# dtrun_package(COMPONENT NAME SECTION SUMMARY TEXT [DEPENDS list] [RECOMMENDS list] [SUGGESTS list])
macro(dtrun_package component name section summary text)
  cmake_parse_arguments(ARG "" "DEPENDS;RECOMMENDS;SUGGESTS" "" ${ARGN})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}")
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${text}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${ARG_DEPENDS}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS "${ARG_RECOMMENDS}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_SUGGESTS "${ARG_SUGGESTS}")
endmacro()

dtrun_package(dtrun dtrun net "launcher of distributed training jobs"
"Launches N copies of a training program, on this machine or on many, connects
them, and says which rank failed first and why. Takes torchrun's command line,
runs MPI programs, and has its own library of collectives. This package has the
launchers, shared memory, the gloo backend, and the plugin for memory of NVIDIA
GPUs, which looks for CUDA when a job runs."
  DEPENDS "libssl3, libnl-3-200, libnl-route-3-200"
  RECOMMENDS "openssh-client" SUGGESTS "python3, elfutils, dtrun-backend-mpi, dtrun-backend-ucx, dtrun-backend-nccl, dtrun-train")
dtrun_package(python python3-dtrun python "dtrun's collectives for Python"
"import dtrun: the ranks of a job exchange arrays of numpy, torch and others
where they lie, and Python objects."
  DEPENDS "${same}, python3 (>= 3.9)" SUGGESTS "python3-numpy, python3-torch")
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
# What Python compiles is not the package's: it is made and removed with it.
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${CPACK_DTRUN_SOURCE}/packaging/control/python/postinst
                                              ${CPACK_DTRUN_SOURCE}/packaging/control/python/prerm)
dtrun_package(sdk dtrun-sdk devel "headers to compile programs and plugins for dtrun"
"For programs that call dtrun's library (pkg-config dtrun, or CMake's
find_package(dtrun)), and for backends, launchers and devices of your
own (find_package(dtrun-sdk)), which dtrun-conformance tries."
  DEPENDS "${same}")
dtrun_package(mpi dtrun-backend-mpi net "backend of dtrun over Open MPI"
"backend.name = \"mpi\": the operations of dtrun's library are done by Open MPI."
  DEPENDS "${same}" RECOMMENDS "openmpi-bin, libpmix2")
dtrun_package(ucx dtrun-backend-ucx net "backend of dtrun over UCX"
"backend.name = \"ucx\": the operations of dtrun's library use UCX, which has
InfiniBand, RoCE and TCP."
  DEPENDS "${same}")
dtrun_package(nccl dtrun-backend-nccl net "backend of dtrun over NCCL, for NVIDIA GPUs"
"backend.name = \"nccl\": the operations of dtrun's library are done by NCCL. NCCL
and CUDA are not part of Debian's main archive; the backend looks for them when
a job runs."
  DEPENDS "${same}" SUGGESTS "libnccl2, libcuda1")
dtrun_package(train dtrun-train science "example of data-parallel training with dtrun and libtorch"
"dtrun-train trains a small network on Fashion-MNIST, data-parallel in C++."
  DEPENDS "${same}" RECOMMENDS "dataset-fashion-mnist")
