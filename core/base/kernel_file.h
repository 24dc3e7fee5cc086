// Reads small kernel files in /proc and /sys. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dtrun {

// The content, as far as it could be read; empty if the file does not exist. The process behind a /proc file
// may exit during the read, which makes streams throw.
std::string ReadKernelFile(const std::string& path);

// The first line, without its line feed.
std::string FirstLineOf(const std::string& path);

// Sorted by name. Empty if the folder cannot be listed.
std::vector<std::filesystem::path> EntriesOf(const std::filesystem::path& folder);

}  // namespace dtrun
