#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <boost/dll/shared_library.hpp>
#include <exception>
#include <mutex>
#include <string_view>

#include "core/base/error.h"
#include "core/base/error_id.h"
#include "core/plugin/elf.h"
#include "core/plugin/host.h"
#include "core/plugin/normalise.h"
#include "core/plugin/permissions.h"
#include "core/plugin/plugin_code.h"
#include "core/plugin/plugin_file.h"
#include "core/plugin/services.h"

namespace dtrun::plugin {
namespace {

// Checks everything that must hold before the loader maps the file.
Result<Identity> Identify(const File& file, const Result<OpenedFile>& opened) {
  Identity identity{file, {}, {}, {}};
  Result<ElfFile> elf = opened ? ReadElf(*opened) : opened.error();
  if (!elf)
    return identity.Refuse(elf.error().code, elf.error().text,
                           "install the plugin again, or build it for this machine");
  identity.build_id = elf->build_id;
  if (Status status = CheckPermissions(file.path, nullptr); !status) {
    return identity.Refuse(status.error().code, "it is not loaded because others could have changed it",
                           status.error().text);
  }
  Result<std::string> id = FileId(*opened, identity.build_id, file.id);
  if (!id) return identity.Refuse(id.error().code, id.error().text, "start the job again");
  if (!file.id.empty() && *id != file.id) {
    Error wrong = identity.Refuse(
        DTRUN_FAILED_PRECONDITION, fmt::format("its file has {}, wanted is {}", *id, file.id),
        IsPin(file.id) ? fmt::format("install the pinned file, or change {}.sha256", KindText(file.kind))
                       : "it was replaced since dtrun examined it: start the job again");
    wrong.id = ErrorId::kPluginReplaced;
    return wrong;
  }
  identity.id = *std::move(id);
  return identity;
}

// Extracts dlerror's text from Boost's message.
std::string_view OfTheLoader(std::string_view text) {
  constexpr std::string_view kBefore = "(dlerror system message: ", kAfter = "): ";
  const std::size_t begin = text.find(kBefore), end = text.rfind(kAfter);
  if (begin == text.npos || end == text.npos || end < begin + kBefore.size()) return text;
  return text.substr(begin + kBefore.size(), end - begin - kBefore.size());
}

using Library = std::unique_ptr<const boost::dll::shared_library>;

Result<Library> Open(const Identity& identity) {
  using boost::dll::load_mode::type;
  const auto mode = static_cast<type>(boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local |
                                      static_cast<type>(RTLD_NODELETE));
  try {
    // Use the throwing overload: the other one loses the loader's text.
    return Library(new boost::dll::shared_library(identity.file.path, mode));
  } catch (const std::exception& error) {
    return identity.Refuse(DTRUN_SYSTEM, fmt::format("the loader says: {}", OfTheLoader(error.what())),
                           "install what it links to, or rebuild it on this system");
  }
}

// In a struct, since Result of a bare function pointer does not compile under -Wshadow.
struct Entry {
  dtrun_plugin_entry call;
};

Result<Entry> FindEntry(const Identity& identity, const boost::dll::shared_library& library) {
  if (!library.has(DTRUN_PLUGIN_ENTRY_SYMBOL)) {
    for (unsigned major = 0; major <= DTRUN_ABI_MAJOR + 9; ++major) {
      if (!library.has(fmt::format("dtrun_plugin_entry_v{}", major))) continue;
      return identity.Refuse(
          DTRUN_FAILED_PRECONDITION,
          fmt::format("it was built for ABI {}, and this dtrun has ABI {}",
                      major == 0 ? "0.x, a draft" : std::to_string(major),
                      AbiText(DTRUN_ABI_MAJOR, DTRUN_ABI_MINOR)),
          major < DTRUN_ABI_MAJOR
              ? "install a newer release of the plugin, or change it as plugins.md says and rebuild it"
              : "upgrade dtrun or install an older release of the plugin");
    }
    return identity.Refuse(DTRUN_FAILED_PRECONDITION,
                           fmt::format("it does not export '{}'", DTRUN_PLUGIN_ENTRY_SYMBOL),
                           "check that it is a dtrun plugin");
  }
  auto& entry = library.get<dtrun_status(const dtrun_host*, const dtrun_plugin**, dtrun_error*)>(
      DTRUN_PLUGIN_ENTRY_SYMBOL);
  // dlsym also finds symbols of the libraries that the file links to.
  Dl_info owner;
  struct stat found, wanted;
  if (::dladdr(reinterpret_cast<void*>(&entry), &owner) == 0 || ::stat(owner.dli_fname, &found) != 0 ||
      ::stat(identity.file.path.c_str(), &wanted) != 0 || found.st_dev != wanted.st_dev ||
      found.st_ino != wanted.st_ino) {
    return identity.Refuse(
        DTRUN_FAILED_PRECONDITION,
        fmt::format("its '{}' is that of another library it links to", DTRUN_PLUGIN_ENTRY_SYMBOL),
        "build it with dtrun_add_plugin, so that it has its own");
  }
  return Entry{&entry};
}

Error Replaced(const Identity& identity, std::string_view when) {
  return identity.Refuse(DTRUN_FAILED_PRECONDITION, fmt::format("it was replaced or changed while {}", when),
                         "let its installation finish, and start the job again");
}

// The loader opens the file by its path again, so that $ORIGIN and the path in a debugger are right. If the
// file was replaced by now, it is rejected before any of its code runs.
Status CheckUnchanged(const Identity& identity, const OpenedFile& opened) {
  if (opened.IsStillAt(identity.file.path)) return {};
  return Replaced(identity, "it was examined");
}

// A file replaced between that check and the loader's open is rejected too, but its initialisers have run.
Status CheckLoaded(const Identity& identity, const OpenedFile& opened,
                   const boost::dll::shared_library& library) {
  if (opened.IsLoadedAs(library.native()) && opened.IsUnchanged()) return {};
  if (::fcntl(opened.descriptor(), F_GETFD) < 0)
    return identity.Refuse(DTRUN_INTERNAL, "loading it closed a descriptor that it has not opened",
                           "report it to the plugin's author");
  return Replaced(identity, "it was loaded");
}

Result<const dtrun_plugin*> Enter(const Identity& identity, Entry entry, const dtrun_host* host) {
  const dtrun_plugin* raw = nullptr;
  PluginError reported;
  std::string thrown = "something other than a std::exception";
  try {
    const dtrun_status status = entry.call(host, &raw, &reported);
    if (status == DTRUN_OK) return raw;
    return identity.Refuse(status, fmt::format("its entry failed: {}", Explained(status, reported, "").text),
                           "see the plugin's own documentation");
  } catch (const std::exception& error) {
    thrown = error.what();
  } catch (...) {
  }
  return identity.Refuse(DTRUN_INTERNAL, fmt::format("its entry threw an exception: {}", thrown),
                         "report it to the plugin's author");
}

void Announce(const Plugin& plugin) {
  const dtrun_plugin& table = plugin.table();
  const std::string line = fmt::format("loaded version {}, ABI {}, from '{}' ({})", table.version,
                                       AbiText(table.abi_major, table.abi_minor_built),
                                       plugin.file().path.string(), plugin.file().origin);
  LogService()->write(&plugin.host(), DTRUN_LOG_INFO, table.name, {line.c_str(), line.size()});
}

}  // namespace

// One final answer per file. Intentionally never destroyed: plugins outlive everything.
class Registry {
 public:
  static Registry& Get() {
    static auto* registry = new Registry;
    return *registry;
  }

  Result<const Plugin*> Load(const File& file, bool in_probe) {
    const std::lock_guard lock(mutex_);
    const auto known = answers_.find(file.path.string());
    if (known != answers_.end()) return known->second;
    return answers_.emplace(file.path.string(), LoadNow(file, in_probe)).first->second;
  }

 private:
  Result<const Plugin*> LoadNow(const File& file, bool in_probe) {
    const Result<OpenedFile> opened = OpenedFile::Open(file.path);
    Result<Identity> identity = Identify(file, opened);
    if (!identity) return std::move(identity).error();
    if (Status same = CheckUnchanged(*identity, *opened); !same) return std::move(same).error();
    const CodeOfLoad code;
    auto library = Open(*identity);
    if (!library) return std::move(library).error();
    libraries_.push_back(std::move(*library));
    if (Status same = CheckLoaded(*identity, *opened, *libraries_.back()); !same)
      return std::move(same).error();
    auto entry = FindEntry(*identity, *libraries_.back());
    if (!entry) return std::move(entry).error();
    code.Note(file.kind, file.name, reinterpret_cast<const void*>(entry->call));
    const dtrun_host* host = HostTable(file.kind, in_probe);
    auto raw = Enter(*identity, *entry, host);
    if (!raw) return std::move(raw).error();
    Result<Tables> tables = Normalise(&*identity, *raw);
    if (!tables) return std::move(tables).error();

    auto plugin = std::make_unique<Plugin>();
    plugin->file_ = file;
    plugin->file_.name = tables->plugin.name;
    plugin->id_ = identity->id;
    plugin->host_ = host;
    plugin->table_ = tables->plugin;
    plugin->backend_ = tables->backend;
    plugin->launcher_ = tables->launcher;
    plugin->device_ = tables->device;
    plugin->table_.backend = file.kind == Kind::kBackend ? &plugin->backend_ : nullptr;
    plugin->table_.launcher = file.kind == Kind::kLauncher ? &plugin->launcher_ : nullptr;
    plugin->table_.device = file.kind == Kind::kDevice ? &plugin->device_ : nullptr;
    Announce(*plugin);
    return plugin.release();
  }

  std::mutex mutex_;
  std::vector<Library> libraries_;  // never closed: plugins' threads and tables live until the process ends
  std::map<std::string, Result<const Plugin*>> answers_;
};

Result<const Plugin*> Load(const File& file, bool in_probe) { return Registry::Get().Load(file, in_probe); }

options::Schema Plugin::schema() const {
  const std::string kind = KindText(file_.kind);
  return options::FromAbi(table_.options, table_.option_count, kind + ".options.", file_.name + " " + kind);
}

Result<dtrun_options> Plugin::Defaults() const {
  return options::DefaultsOf(schema(), std::string(KindText(file_.kind)) + ".options.");
}

}  // namespace dtrun::plugin
