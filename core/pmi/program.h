// Finds the MPI or another library that a program is linked with, as far as the file shows. Pure function of
// the file; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/pmi/kind.h"

namespace dtrun::pmi {

// The file name of its MPI library: "libmpi.so.40". Empty for scripts, for programs without MPI, and for
// programs that load MPI later.
std::string MpiLibraryOf(const std::filesystem::path& program);
// Whether it is linked with a library with this file name prefix: "libdtrun.so". False for scripts.
bool IsLinkedWith(const std::filesystem::path& program, std::string_view library);
// The interface that this library looks for; kNone if it is not an MPI library.
Kind KindOfLibrary(std::string_view name);

// The interface that the program's library would look for. kNone for scripts, for programs without MPI, and
// for programs that load it later.
Kind KindOfProgram(const std::filesystem::path& program);

}  // namespace dtrun::pmi
