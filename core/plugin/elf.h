// A look at a shared object before the loader touches it.
//
// The loader's own answer to a cut file is a message about "file too short", or SIGBUS;
// this one says what is wrong. Pure functions of the file; any thread.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/plugin/opened_file.h"

namespace dtrun::plugin {

struct ElfFile {
  std::string build_id;  // hex; empty when there is none
};

// The error is a clause for Identity::Refuse: "truncated or not a shared object: …".
Result<ElfFile> ReadElf(const OpenedFile& file);

}  // namespace dtrun::plugin
