# CPack's .deb packages: `cmake --build build/release --target package` writes them to build/release/packages.
#
# Components of install() are packages, but for docs, which goes with runtime. Their names, texts and dependencies are in
# debian.cmake, which CPack reads when it packs: a version given to it (cpack -D CPACK_PACKAGE_VERSION=...) is theirs too.
set(DTRUN_MAINTAINER "dtrun maintainers <maintainers@dtrun.invalid>" CACHE STRING "Maintainer of the .deb packages")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME dtrun)
set(CPACK_PACKAGE_CONTACT ${DTRUN_MAINTAINER})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/packaging/debian.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/policy_files.cmake)
set(CPACK_DTRUN_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_DTRUN_LIBRARIES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY} ${DTRUN_PLUGIN_OUTPUT_DIRECTORY})
get_cmake_property(CPACK_COMPONENTS_ALL COMPONENTS)
include(CPack)
