// "dtrun.plugins/1": backends that other backends stand on. What a wrapper may open is in the snapshot of its
// options, where the launching process has put file, id and options of each.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/options/snapshot.h"
#include "core/plugin/host.h"
#include "core/plugin/plugin.h"
#include "core/plugin/plugin_code.h"
#include "core/plugin/search_path.h"
#include "core/plugin/services.h"
#include "dtrun/plugin/failure.hpp"

namespace dtrun::plugin {
namespace {

using Wrapped = dtrun_options::Wrapped;

// What `open` returns is its first member.
struct Opened {
  dtrun_wrapped shown{};
  const Plugin* loaded = nullptr;
  std::shared_ptr<const Wrapped> wrapped;  // its options outlive the instance
  dtrun_plugin table{};
  dtrun_backend backend{};
  std::size_t slot = 0;
};

// Backends that may be open in a process at a time. Each has members of its own, as these have no argument
// that tells them which one is meant: a wrapper may pass on instance and communicators of the one below as
// its own.
constexpr std::size_t kMostOpen = 32;

struct Stack {
  std::mutex mutex;
  std::array<std::atomic<const Opened*>, kMostOpen> slots{};
  std::shared_ptr<const CallWatch> watch = std::make_shared<CallWatch>();

  // Intentionally never destroyed: a plugin may close another one after main has returned.
  static Stack& Get() {
    static auto* stack = new Stack;
    return *stack;
  }
};

std::shared_ptr<void> Watch(const std::string& name, std::string_view where) {
  std::unique_lock lock(Stack::Get().mutex);
  const auto watch = Stack::Get().watch;
  lock.unlock();
  return *watch ? (*watch)(fmt::format("backend '{}', {}", name, where)) : nullptr;
}

File FileOf(const Wrapped& wrapped) {
  File file;
  file.name = FileForm(wrapped.name);
  file.path = wrapped.path;
  file.origin = "named by another backend";
  file.id = wrapped.id;
  return file;
}

// A plugin must not throw (E1), but the wrapper above it is no C++ program.
template <class Body>
dtrun_status Guarded(dtrun_error* err, Body&& body) noexcept {
  try {
    const Status status = body();
    return status ? DTRUN_OK : status.error().CopyTo(err);
  } catch (const std::bad_alloc&) {
    return Error{DTRUN_OUT_OF_MEMORY, "out of memory"}.CopyTo(err);
  } catch (...) {
    return Error{DTRUN_INTERNAL, "an exception left a plugin, which rule E1 forbids"}.CopyTo(err);
  }
}

// Names the plugin that failed, unless one below it is named already. Of its options it knows one name only.
Error Named(dtrun_status status, const PluginError& reported, const std::string& name) {
  Error error = Explained(status, reported, "");
  if (error.text.starts_with("backend '") || error.text.starts_with("backend plugin '")) return error;
  constexpr std::string_view kOptions = "backend.options.";
  const std::string own = fmt::format("backend.{}.", name);
  for (std::size_t at = 0; (at = error.text.find(kOptions, at)) != error.text.npos; at += own.size())
    error.text.replace(at, kOptions.size(), own);
  error.text = fmt::format("backend '{}': {}", name, error.text);
  return error;
}

// The members that are watched, and name the plugin in their failures.
template <std::size_t kSlot>
struct Members {
  static const Opened& Self() { return *Stack::Get().slots[kSlot].load(); }

  template <class Call>
  static dtrun_status Do(const char* member, dtrun_error* err, Call&& call) {
    return Guarded(err, [&]() -> Status {
      const Opened& self = Self();
      PluginError reported;
      const auto watch = Watch(self.wrapped->name, member);
      const dtrun_status status = call(self.loaded->backend(), &reported);
      return status == DTRUN_OK ? Status() : Named(status, reported, self.wrapped->name);
    });
  }
  static dtrun_status LaunchInfo(dtrun_instance* instance, const dtrun_launch_query* query,
                                 const dtrun_launch_sink* sink, dtrun_error* err) {
    return Do("in launch_info", err, [&](const dtrun_backend& below, dtrun_error* reported) {
      return below.launch_info(instance, query, sink, reported);
    });
  }
  static dtrun_status QueryCaps(dtrun_instance* instance, dtrun_backend_caps* caps, dtrun_error* err) {
    return Do("in query_caps", err, [&](const dtrun_backend& below, dtrun_error* reported) {
      return below.query_caps(instance, caps, reported);
    });
  }
  static dtrun_status CommCreate(dtrun_instance* instance, const dtrun_comm_params* params,
                                 dtrun_backend_comm** out, dtrun_error* err) {
    return Do("in comm_create", err, [&](const dtrun_backend& below, dtrun_error* reported) {
      return below.comm_create(instance, params, out, reported);
    });
  }
  static void CommDestroy(dtrun_backend_comm* comm) {
    const Opened& self = Self();
    const auto watch = Watch(self.wrapped->name, "in comm_destroy");
    self.loaded->backend().comm_destroy(comm);
  }
  static void Put(dtrun_backend* table) {
    if (table->launch_info != nullptr) table->launch_info = LaunchInfo;
    table->query_caps = QueryCaps;
    table->comm_create = CommCreate;
    table->comm_destroy = CommDestroy;
  }
};

// Gives it a slot and the members of that.
template <std::size_t... kSlots>
Status TakeSlot(Opened* opened, std::index_sequence<kSlots...>) {
  static constexpr std::array kPut = {Members<kSlots>::Put...};
  Stack& stack = Stack::Get();
  const std::lock_guard lock(stack.mutex);
  const auto free =
      std::ranges::find_if(stack.slots, [](const auto& slot) { return slot.load() == nullptr; });
  if (free == stack.slots.end())
    return Error::Of(DTRUN_FAILED_PRECONDITION, "{} backends are open on others, and no more can be",
                     kMostOpen);
  *free = opened;
  opened->slot = static_cast<std::size_t>(free - stack.slots.begin());
  kPut[opened->slot](&opened->backend);
  return {};
}

void LeaveSlot(const Opened& opened) { Stack::Get().slots[opened.slot] = nullptr; }

// The backend that the option names, as the launching process has found it.
Result<std::shared_ptr<const Wrapped>> Find(const dtrun_options* options, const char* key) {
  if (options == nullptr || key == nullptr)
    return Error{DTRUN_INVALID_ARGUMENT, "open a backend: options or key is NULL"};
  const auto found = options->entries.find(std::string_view(key));
  if (found == options->entries.end())
    return Error::Of(DTRUN_INVALID_ARGUMENT, "the plugin's table has no option '{}'", key);
  if (found->second.wrapped != nullptr) return found->second.wrapped;
  if (!found->second.value.set())
    return Error::Of(DTRUN_NOT_FOUND, "option '{}' is unset, and names no backend", key);
  return Error::Of(DTRUN_INVALID_ARGUMENT,
                   "option '{}' names no backend: its table lacks DTRUN_OPTION_BACKEND", key);
}

dtrun_status Open(const dtrun_host* host, const dtrun_options* options, const char* key,
                  const dtrun_wrapped** out, dtrun_error* err) {
  return Guarded(err, [&]() -> Status {
    auto wrapped = Find(options, key);
    if (!wrapped) return std::move(wrapped).error();
    auto opened = std::make_unique<Opened>();
    opened->wrapped = *std::move(wrapped);
    const std::string& name = opened->wrapped->name;
    {
      const auto watch = Watch(name, kBeingLoaded);
      auto loaded = Load(FileOf(*opened->wrapped), host->in_probe != 0);
      if (!loaded) return std::move(loaded).error();
      opened->loaded = *loaded;
    }
    opened->table = opened->loaded->table();
    opened->backend = opened->loaded->backend();
    opened->table.backend = &opened->backend;
    opened->table.init = nullptr;
    opened->table.shutdown = nullptr;
    DTRUN_INIT(opened->shown);
    opened->shown.plugin = &opened->table;
    if (Status taken = TakeSlot(opened.get(), std::make_index_sequence<kMostOpen>()); !taken) return taken;
    PluginError reported;
    const auto watch = Watch(name, "in its init");
    const dtrun_status status =
        sdk::InitPlugin(opened->loaded->table(), &opened->loaded->host(), &opened->wrapped->options,
                        &opened->shown.instance, &reported);
    if (status != DTRUN_OK) {
      LeaveSlot(*opened);
      return Named(status, reported, name);
    }
    *out = &opened.release()->shown;
    return {};
  });
}

void Close(const dtrun_host*, const dtrun_wrapped* wrapped) {
  if (wrapped == nullptr) return;
  const std::unique_ptr<const Opened> opened(reinterpret_cast<const Opened*>(wrapped));
  const auto watch = Watch(opened->wrapped->name, "in its shutdown");
  opened->loaded->table().shutdown(wrapped->instance);
  LeaveSlot(*opened);
}

void Require(const std::map<std::string, std::string, std::less<>>& ids, dtrun_options* options) {
  for (auto& [key, entry] : options->entries) {
    if (entry.wrapped == nullptr) continue;
    Wrapped wrapped = *entry.wrapped;
    if (const auto id = ids.find(FileForm(wrapped.name)); id != ids.end()) wrapped.id = id->second;
    Require(ids, &wrapped.options);
    entry.wrapped = std::make_shared<const Wrapped>(std::move(wrapped));
  }
}

}  // namespace

const dtrun_plugins_service* PluginsService() {
  static constexpr dtrun_plugins_service kService{sizeof(dtrun_plugins_service), 0, Open, Close};
  return &kService;
}

void SetCallWatch(CallWatch watch) {
  auto shared = std::make_shared<const CallWatch>(std::move(watch));
  const std::lock_guard lock(Stack::Get().mutex);
  Stack::Get().watch = std::move(shared);
}

Result<std::vector<const Plugin*>> LoadBelow(const dtrun_options& options, bool in_probe) {
  std::vector<const Plugin*> all;
  for (const auto& [key, entry] : options.entries) {
    if (entry.wrapped == nullptr) continue;
    const auto loaded = Load(FileOf(*entry.wrapped), in_probe);
    if (!loaded) return loaded.error();
    all.push_back(*loaded);
    auto below = LoadBelow(entry.wrapped->options, in_probe);
    if (!below) return below;
    all.insert(all.end(), below->begin(), below->end());
  }
  return all;
}

Result<std::string> StackId(const Plugin& plugin, const dtrun_options& options) {
  const auto below = LoadBelow(options, plugin.host().in_probe != 0);
  if (!below) return below.error();
  std::string ids = plugin.id();
  for (const Plugin* one : *below) ids += fmt::format("|{}={}", one->file().name, one->id());
  return ids;
}

std::string RequireStack(std::string_view id, dtrun_options* options) {
  const std::vector<std::string_view> parts = Split(id, '|');
  std::map<std::string, std::string, std::less<>> ids;
  for (const std::string_view part : parts) {
    const std::size_t equals = part.find('=');
    if (equals != part.npos) ids.emplace(part.substr(0, equals), part.substr(equals + 1));
  }
  Require(ids, options);
  return std::string(parts.front());
}

}  // namespace dtrun::plugin
