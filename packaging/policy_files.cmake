# Before CPack packs: what Debian's policy wants in every package (copyright, changelog), and compressed manual pages.
# An empty component, such as a backend that was not built, has no folder here.
file(GLOB folders LIST_DIRECTORIES true ${CPACK_TEMPORARY_DIRECTORY}/*)
string(TIMESTAMP year "%Y" UTC)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH, where that is set
foreach(folder IN LISTS folders)
  cmake_path(GET folder FILENAME component)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  if(NOT IS_DIRECTORY ${folder}/usr OR NOT package)
    continue()
  endif()
  set(docs ${folder}/usr/share/doc/${package})
  file(MAKE_DIRECTORY ${docs})
  file(WRITE ${docs}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: dtrun

Files: *
Copyright: ${year} The dtrun maintainers
License: Apache-2.0
 On Debian systems, the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")
  file(WRITE ${docs}/changelog.Debian
"${package} (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Built by CPack from dtrun ${CPACK_PACKAGE_VERSION}; what changed is in the package dtrun,
    in CHANGELOG.md.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  if(IS_DIRECTORY ${folder}/usr/share/zsh/site-functions)  # Debian's zsh reads this folder only in /usr/local
    file(RENAME ${folder}/usr/share/zsh/site-functions ${folder}/usr/share/zsh/vendor-completions)
  endif()
  file(GLOB compressible ${folder}/usr/share/man/man[15]/*.[15])
  execute_process(COMMAND gzip -9nf ${docs}/changelog.Debian ${compressible} COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD_RECURSE ${docs} FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
       DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
