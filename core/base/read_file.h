// Reads files that another user wrote or named, or that lie in a shared folder, in bounded time and memory.
// An open never waits for a writer. Only regular files are read, because pipes, devices and links to them
// might never end. For a pipe that the user names, use spec::ReadFile.
//
// Pure except for the read; any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun {

// "a folder", "a pipe", "a socket" or "a device", of a mode that is not of a regular file.
const char* KindOf(mode_t mode);

// An error names the file and its actual type.
Result<UniqueFd> OpenForeignFile(const std::filesystem::path& file);

// Reads the whole file. A file larger than `most` bytes is an error.
Result<std::string> ReadWholeForeignFile(const std::filesystem::path& file, std::size_t most);

// Reads the first `most` bytes; empty if `file` is not a readable regular file.
std::string ReadForeignFile(const std::filesystem::path& file, std::size_t most);

// Reads small kernel files in /proc and /sys. Any thread.

// The content, as far as it could be read; empty if the file does not exist. The process behind a /proc file
// may exit during the read, which makes streams throw.
std::string ReadKernelFile(const std::string& path);

// The first line, without its line feed.
std::string FirstLineOf(const std::string& path);

// Sorted by name. Empty if the folder cannot be listed.
std::vector<std::filesystem::path> EntriesOf(const std::filesystem::path& folder);

}  // namespace dtrun
