# The pages as they are in the source tree, so that their links lead somewhere in an installation too
# (tests/test_docs.py).
set(dtrun_docs ${CMAKE_INSTALL_DATADIR}/doc/dtrun)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE DESTINATION ${dtrun_docs} COMPONENT docs)
install(DIRECTORY docs configs DESTINATION ${dtrun_docs} COMPONENT docs)
file(GLOB dtrun_readmes RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS
     core/README.md launchers/*/README.md plugins/*/README.md)
foreach(page IN LISTS dtrun_readmes)
  cmake_path(GET page PARENT_PATH folder)
  install(FILES ${page} DESTINATION ${dtrun_docs}/${folder} COMPONENT docs)
endforeach()
