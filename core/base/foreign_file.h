// Reads files that another user wrote or named, or that lie in a shared folder, in bounded time and memory.
// An open never waits for a writer. Only regular files are read, because pipes, devices and links to them
// might never end. For a pipe that the user names, use spec::ReadFile.
//
// Pure except for the read; any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun {

// An error names the file and its actual type.
Result<UniqueFd> OpenForeignFile(const std::filesystem::path& file);

// Reads the whole file. A file larger than `most` bytes is an error.
Result<std::string> ReadWholeForeignFile(const std::filesystem::path& file, std::size_t most);

// Reads the first `most` bytes; empty if `file` is not a readable regular file.
std::string ReadForeignFile(const std::filesystem::path& file, std::size_t most);

}  // namespace dtrun
