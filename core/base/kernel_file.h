// Reading the small files in which the kernel says something: /proc, /sys. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dtrun {

// The content, as far as it could be read; empty when there is none. A process whose file it is may end
// meanwhile, at which streams throw.
std::string ReadKernelFile(const std::string& path);

// Without its line feed.
std::string FirstLineOf(const std::string& path);

// By name. A file that cannot be listed is a folder without entries.
std::vector<std::filesystem::path> EntriesOf(const std::filesystem::path& folder);

}  // namespace dtrun
