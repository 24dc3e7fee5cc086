// A file that an untrusted program has written, or named: read in bounded time and memory, whatever it
// contains.
//
// Pure but for the read; any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace dtrun {

// The first `most` bytes of an ordinary file; empty where there is none, so also for a pipe or a device,
// which might never end.
std::string ReadForeignFile(const std::filesystem::path& file, std::size_t most);

}  // namespace dtrun
