// A file that somebody else has written, or named, or that lies where others may write: read in bounded time
// and memory, whatever stands there. An open never waits for a writer, and only an ordinary file is read:
// pipes, devices and links to them might never end. A pipe that the user names is for config::ReadFile.
//
// Pure but for the read; any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun {

// An error names the file, and what stands there instead.
Result<UniqueFd> OpenForeignFile(const std::filesystem::path& file);

// All of it. A file of more than `most` bytes is an error.
Result<std::string> ReadWholeForeignFile(const std::filesystem::path& file, std::size_t most);

// Its first `most` bytes; empty where no ordinary file can be read.
std::string ReadForeignFile(const std::filesystem::path& file, std::size_t most);

}  // namespace dtrun
