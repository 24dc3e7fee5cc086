// Finds executable files, and the folders in which a name without '/' is looked up. Reads the file system;
// any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun {

// Whether this process may execute the file. False for folders.
bool IsExecutable(const std::filesystem::path& file);

// The folders in `path`, a value of the variable PATH. As for execvp(), a relative folder is relative to
// `cwd`, and an empty one between colons is `cwd`. An empty `path` lists none.
std::vector<std::filesystem::path> FoldersOfPath(std::string_view path, const std::filesystem::path& cwd);

// The first executable file called `name` in these folders.
std::optional<std::filesystem::path> FindOnPath(const std::string& name, std::string_view path,
                                                const std::filesystem::path& cwd);

// The names of the executable files with this prefix in these folders, sorted, without duplicates.
std::vector<std::string> ProgramsWithPrefix(std::string_view prefix, std::string_view path,
                                            const std::filesystem::path& cwd);

// share/dtrun of the installation or build tree that this program belongs to.
std::filesystem::path SharedFolder();

}  // namespace dtrun
