#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/base/read_file.h"
#include "core/base/text.h"
#include "core/plugin/permissions.h"
#include "core/plugin/plugin.h"
#include "core/plugin/search_path.h"

namespace dtrun::plugin {
namespace {

namespace fs = std::filesystem;

// Also true for a broken link: an unusable match is an error, not an absence.
bool Exists(const fs::path& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0;
}

// Adds the real path and checks the permissions of a file that was found.
Result<File> Inspect(File file) {
  std::error_code error;
  const fs::path real = fs::canonical(file.path, error);
  if (error) {
    return Error::System(fmt::format("{} plugin '{}'", KindText(file.kind), Printable(file.path.string())),
                         error.value());
  }
  if (!fs::is_regular_file(real, error)) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "{} plugin '{}' is not a regular file; name a shared object",
                     KindText(file.kind), Printable(real.string()));
  }
  if (Status status = CheckPermissions(file.path, &file.warnings); !status) return std::move(status).error();
  std::sort(file.warnings.begin(), file.warnings.end());
  file.warnings.erase(std::unique(file.warnings.begin(), file.warnings.end()), file.warnings.end());
  file.path = real;
  return file;
}

Result<File> FindPath(Kind kind, const fs::path& path) {
  const std::string wanted = fmt::format("libdtrun_{}_<name>.so", KindText(kind));
  const auto parsed = ParseFileName(path.filename().string());
  if (!parsed || parsed->first != kind) {
    return Error::Of(DTRUN_INVALID_ARGUMENT,
                     "'{}' does not have the file name of a {} plugin; it must be named {}",
                     Printable(path.string()), KindText(kind), wanted);
  }
  if (!Exists(path)) {
    return Error::Of(DTRUN_NOT_FOUND, "{} plugin '{}' does not exist; check the path", KindText(kind),
                     Printable(path.string()));
  }
  return Inspect(File{kind, parsed->second, path.lexically_normal(), "its path", {}, {}});
}

// Why nothing was found in a folder, for the list of folders; empty if it can be read.
std::string FolderState(const fs::path& folder) {
  std::error_code error;
  const fs::directory_iterator listing(folder, error);
  return error ? ", " + Error::System("cannot be read", error.value()).text : std::string();
}

struct OtherName {
  std::string_view names;  // separated by blanks
  std::string_view hint;
};

// Common names of launchers for which dtrun has no plugin of that name.
constexpr OtherName kOtherLaunchers[] = {
    {" ssh rsh pdsh local fork ",
     "leave launcher.name out: hosts of cluster.hosts are reached by ssh already"},
    {" srun sbatch salloc ", "did you mean 'slurm'? or leave it out, with cluster.from = \"slurm\""},
    {" mpiexec orterun prterun openmpi open-mpi mpich hydra mpi ", "did you mean 'mpirun'?"},
    {" bsub blaunch jsrun ", "leave launcher.name out, with cluster.from = \"lsf\""},
    {" qsub pbsdsh ", "leave launcher.name out, with cluster.from = \"pbs\""},
    {" qrsh sge ", "leave launcher.name out, with cluster.from = \"gridengine\""},
    {" accelerate deepspeed horovodrun horovod default none auto ",
     "leave launcher.name out: dtrun starts the ranks itself"},
};

std::string_view HintOf(const std::string& launcher) {
  const std::string name = ' ' + Lowercase(launcher) + ' ';
  const auto found = std::ranges::find_if(
      kOtherLaunchers, [&](const OtherName& one) { return one.names.find(name) != std::string_view::npos; });
  return found == std::end(kOtherLaunchers) ? "" : found->hint;
}

Error NotFound(Kind kind, const std::string& name, const std::vector<Folder>& folders) {
  std::vector<std::string> names;
  const char* other = nullptr;
  for (const File& file : FindAll(folders)) {
    if (file.kind == kind) names.push_back(TypedForm(file.name));
    if (file.kind != kind && file.name == FileForm(name)) other = KindText(file.kind);
  }
  std::string text = fmt::format("there is no {} plugin '{}'", KindText(kind), name);
  if (other != nullptr) text += fmt::format("\n  there is a {} of that name", other);
  const std::string_view hint = kind == Kind::kLauncher ? HintOf(name) : "";
  if (!hint.empty())
    return Error::Of(DTRUN_NOT_FOUND, "{}\n  {}\n  launcher plugins that exist: {}", text, hint,
                     fmt::join(names, ", "));
  if (const auto near = Nearest(TypedForm(name), names)) text += fmt::format("\n  did you mean '{}'?", *near);
  if (kind == Kind::kBackend && name == "shm") {
    text +=
        "\n  shared memory between ranks of a host is comm.local = \"shm\", the default, beside any backend";
  }
  text += fmt::format("\n  {} plugins that exist: {}", KindText(kind),
                      names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  if (kind == Kind::kBackend && name != "none" && name != "auto")  // where these two are not allowed
    text += "; and without a plugin: \"none\", or \"auto\" for the first that works";
  text += folders.empty() ? "\n  no folder was looked in" : "\n  looked in:";
  for (const Folder& folder : folders) {
    text += fmt::format("\n    {} ({}{})", Printable(folder.path.string()), folder.origin,
                        FolderState(folder.path));
  }
  text += fmt::format("\n  add the folder of libdtrun_{}_{}.so with --plugin-dir or plugins.path",
                      KindText(kind), FileForm(name));
  return Error{DTRUN_NOT_FOUND, std::move(text)};
}

}  // namespace

Status CheckName(const std::string& text, std::string_view otherwise) {
  if (IsName(text)) return {};
  const std::string lower = Lowercase(text);
  if (IsName(lower)) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "'{}' is not a plugin name; did you mean '{}'?", text, lower);
  }
  return Error::Of(DTRUN_INVALID_ARGUMENT,
                   "'{}' is not a plugin name: names have up to 32 of a-z, 0-9, '_' and '-' and begin "
                   "with a letter; {}",
                   text, otherwise);
}

Result<File> Find(Kind kind, const std::string& name_or_path, const std::vector<Folder>& folders) {
  if (name_or_path.starts_with('/') && name_or_path.find('\0') == std::string::npos) {
    return FindPath(kind, name_or_path);
  }
  if (Status named = CheckName(name_or_path, "give a name or an absolute path"); !named)
    return std::move(named).error();
  const std::string file_name = fmt::format("libdtrun_{}_{}.so", KindText(kind), FileForm(name_or_path));
  File found;
  for (const Folder& folder : folders) {
    const fs::path path = folder.path / file_name;
    if (!Exists(path)) continue;
    if (found.path.empty()) {
      found = File{kind, name_or_path, path, folder.origin, {}, {}};
    } else {
      found.shadowed.push_back(path);
    }
  }
  if (found.path.empty()) return NotFound(kind, name_or_path, folders);
  return Inspect(std::move(found));
}

std::vector<File> FindAll(const std::vector<Folder>& folders) {
  std::vector<File> files;
  for (const Folder& folder : folders) {
    std::error_code error;
    fs::path real_folder = fs::canonical(folder.path, error);
    if (error) real_folder = folder.path;
    // Skip unreadable folders here; Find reports them when a name is missing.
    for (const fs::path& path : EntriesOf(folder.path)) {
      const auto parsed = ParseFileName(path.filename().string());
      if (!parsed || FileForm(parsed->second) != parsed->second) continue;
      const auto same = [&](const File& file) {
        return file.kind == parsed->first && file.name == parsed->second;
      };
      const auto first = std::find_if(files.begin(), files.end(), same);
      if (first != files.end()) {
        first->shadowed.push_back(path);
        continue;
      }
      fs::path real = real_folder / path.filename();
      if (fs::is_symlink(path, error)) real = fs::canonical(path, error);
      if (error) real = path;  // a broken link stays in the list; loading it explains the error
      error.clear();
      files.push_back(File{parsed->first, parsed->second, std::move(real), folder.origin, {}, {}});
    }
  }
  return files;
}

}  // namespace dtrun::plugin
