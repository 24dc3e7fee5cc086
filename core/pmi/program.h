// Which MPI library, or other one, a program is linked with, as far as the file tells. Pure function of the
// file; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/pmi/kind.h"

namespace dtrun::pmi {

// The file name of that library: "libmpi.so.40". Empty for scripts, for programs without MPI, and for those
// that load it later.
std::string MpiLibraryOf(const std::filesystem::path& program);
// Whether it is linked with a library whose file name begins so: "libdtrun.so". False for scripts.
bool IsLinkedWith(const std::filesystem::path& program, std::string_view library);
// What such a library looks for; kNone for the name of another one.
Kind KindOfLibrary(std::string_view name);

// What the library would look for; kNone for scripts, for programs without MPI, and for those that
// load it later.
Kind KindOfProgram(const std::filesystem::path& program);

}  // namespace dtrun::pmi
