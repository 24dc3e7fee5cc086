// Checks a shared object before the dynamic loader maps it.
//
// For a truncated file the loader reports only "file too short" or crashes with SIGBUS; this check
// names the defect. Pure functions of the file; any thread.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/plugin/plugin_file.h"

namespace dtrun::plugin {

struct ElfFile {
  std::string build_id;  // hex; empty if there is none
};

// The error is a clause for Identity::Refuse: "truncated or not a shared object: …".
Result<ElfFile> ReadElf(const OpenedFile& file);

}  // namespace dtrun::plugin
