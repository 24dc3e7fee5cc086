#include "core/plugin/search_path.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/text.h"

namespace dtrun::plugin {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "libdtrun_";
constexpr std::string_view kSuffix = ".so";
constexpr char kVariable[] = "DTRUN_PLUGIN_PATH";

void Add(std::vector<Folder>* folders, const fs::path& path, const char* origin) {
  if (path.empty()) return;  // an empty element would mean the working directory
  std::error_code error;
  fs::path absolute = fs::absolute(path, error).lexically_normal();
  if (error) return;  // the working directory does not exist, so no relative folder does
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  const auto same = [&](const Folder& folder) { return folder.path == absolute; };
  if (std::none_of(folders->begin(), folders->end(), same)) folders->push_back({absolute, origin});
}

// Has an address in this object.
void Here() {}

}  // namespace

std::vector<fs::path> InstalledFolders() {
  Dl_info info;
  link_map* map = nullptr;
  void* here = reinterpret_cast<void*>(&Here);
  if (::dladdr1(here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr)
    return {};
  std::error_code error;
  if (map->l_name == nullptr || map->l_name[0] == '\0') {  // the program itself
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (error) return {};
    return {program.parent_path().parent_path() / "lib/dtrun/plugins"};
  }
  const fs::path library = fs::canonical(map->l_name, error);
  if (error) return {};
  return {library.parent_path() / "dtrun/plugins"};
}

std::vector<Folder> OrderFolders(const SearchInputs& inputs) {
  std::vector<Folder> folders;
  for (const std::string& folder : inputs.plugin_dirs) Add(&folders, folder, "--plugin-dir");
  if (!inputs.secure) {
    for (const std::string_view one : Split(inputs.environment, ':')) Add(&folders, one, kVariable);
    for (const std::string& folder : inputs.config_folders) Add(&folders, folder, "plugins.path");
  }
  for (const fs::path& folder : inputs.installed) Add(&folders, folder, "installed");
  Add(&folders, inputs.compiled_in, "compiled in");
  return folders;
}

std::vector<std::string> MissingFolders(const std::vector<Folder>& folders) {
  std::vector<std::string> missing;
  for (const Folder& folder : folders) {
    std::error_code failure;
    if (folder.origin != kVariable || fs::is_directory(folder.path, failure)) continue;
    missing.push_back(fmt::format("{}: there is no folder '{}'; correct it, or remove it", kVariable,
                                  Printable(folder.path.string())));
  }
  return missing;
}

std::vector<Folder> SearchPath(const std::vector<std::string>& plugin_dirs,
                               const std::vector<std::string>& config_folders) {
  const char* environment = std::getenv(kVariable);
  return OrderFolders({.plugin_dirs = plugin_dirs,
                       .environment = environment == nullptr ? "" : environment,
                       .config_folders = config_folders,
                       .installed = InstalledFolders(),
                       .compiled_in = DTRUN_PLUGIN_DIR,
                       .secure = ::getauxval(AT_SECURE) != 0});
}

bool IsName(std::string_view text) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto legal = [&](char c) { return letter(c) || IsDigit(c) || c == '_' || c == '-'; };
  return !text.empty() && text.size() <= 32 && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), legal);
}

std::string FileForm(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

std::string TypedForm(std::string_view name) {
  std::string form(name);
  std::ranges::replace(form, '_', '-');
  return form;
}

std::optional<std::pair<Kind, std::string>> ParseFileName(std::string_view file_name) {
  if (!file_name.starts_with(kPrefix) || !file_name.ends_with(kSuffix)) return std::nullopt;
  file_name.remove_prefix(kPrefix.size());
  if (file_name.size() < kSuffix.size()) return std::nullopt;
  file_name.remove_suffix(kSuffix.size());
  for (const Kind kind : kKinds) {
    const std::string prefix = std::string(KindText(kind)) + "_";
    if (!file_name.starts_with(prefix)) continue;
    const std::string_view name = file_name.substr(prefix.size());
    if (IsName(name)) return std::pair{kind, std::string(name)};
  }
  return std::nullopt;
}

}  // namespace dtrun::plugin
