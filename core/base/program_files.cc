#include "core/base/program_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <system_error>

#include "core/base/text.h"

namespace dtrun {

namespace fs = std::filesystem;

bool IsExecutable(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) return false;
  // For root, access() may grant everything; the mode shows whether any user may execute the file.
  return (info.st_mode & 0111) != 0 && ::access(file.c_str(), X_OK) == 0;
}

std::vector<fs::path> FoldersOfPath(std::string_view path, const fs::path& cwd) {
  std::vector<fs::path> folders;
  if (path.empty()) return folders;
  for (const std::string_view folder : Split(path, ':'))
    folders.push_back(folder.empty() ? cwd : cwd / folder);
  return folders;
}

fs::path SharedFolder() {
  std::error_code none;
  return fs::read_symlink("/proc/self/exe", none).parent_path().parent_path() / "share/dtrun";
}

std::optional<fs::path> FindOnPath(const std::string& name, std::string_view path, const fs::path& cwd) {
  for (const fs::path& folder : FoldersOfPath(path, cwd)) {
    if (fs::path file = folder / name; IsExecutable(file)) return file;
  }
  return std::nullopt;
}

std::vector<std::string> ProgramsWithPrefix(std::string_view prefix, std::string_view path,
                                            const fs::path& cwd) {
  std::set<std::string> names;
  for (const fs::path& folder : FoldersOfPath(path, cwd)) {
    std::error_code failure;
    for (fs::directory_iterator file(folder, failure), end; !failure && file != end;
         file.increment(failure)) {
      const std::string name = file->path().filename();
      if (name.starts_with(prefix) && IsExecutable(file->path())) names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace dtrun
