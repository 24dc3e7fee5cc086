// Programs as files, and the folders in which a name without '/' is looked for. Reads the file system; any
// thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun {

// A file that this process may execute. Folders are none.
bool IsExecutable(const std::filesystem::path& file);

// The folders that `path`, a value of the variable PATH, lists. As for execvp(), a relative one begins in
// `cwd`, and an empty one between colons is `cwd`. An empty `path` lists none.
std::vector<std::filesystem::path> FoldersOfPath(std::string_view path, const std::filesystem::path& cwd);

// The first executable file `name` in them.
std::optional<std::filesystem::path> FindOnPath(const std::string& name, std::string_view path,
                                                const std::filesystem::path& cwd);

// The names of the executable files in them that have the prefix, each once, in order of the alphabet.
std::vector<std::string> ProgramsWithPrefix(std::string_view prefix, std::string_view path,
                                            const std::filesystem::path& cwd);

// share/dtrun of the installation, or of the build, that this program belongs to.
std::filesystem::path SharedFolder();

}  // namespace dtrun
