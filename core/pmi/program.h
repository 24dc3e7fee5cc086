// Which MPI library a program is linked with, as far as the file tells. Pure function of the file;
// any thread.
#pragma once

#include <filesystem>

#include "core/pmi/kind.h"

namespace dtrun::pmi {

// What the library would look for; kNone for scripts, for programs without MPI, and for those that
// load it later.
Kind KindOfProgram(const std::filesystem::path& program);

}  // namespace dtrun::pmi
