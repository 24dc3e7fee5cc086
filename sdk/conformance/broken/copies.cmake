# Copies the plugin SOUND of KIND to each of NAMES; the files lie in FOLDER.
foreach(name IN LISTS NAMES)
  configure_file(${FOLDER}/libdtrun_${KIND}_${SOUND}.so ${FOLDER}/libdtrun_${KIND}_${name}.so COPYONLY)
endforeach()
