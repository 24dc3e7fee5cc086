#include "core/plugin/normalise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/text.h"
#include "core/plugin/search_path.h"
#include "dtrun/plugin/failure.hpp"

namespace dtrun::plugin {
namespace {

using sdk::internal::kFloor;

constexpr std::size_t kStamps = offsetof(dtrun_plugin, name);  // magic, ABI numbers, kind

constexpr std::size_t kMostKeyBytes = 64;
constexpr std::size_t kMostTextBytes = 4096;         // of a text of the table or of an option
constexpr std::size_t kMostLongTextBytes = 1 << 16;  // of a long_doc

constexpr const char* kRebuild = "rebuild it with dtrun_add_plugin and DTRUN_PLUGIN_INIT or MakePlugin";

// Copies the part of `raw` that both sides know. A longer table comes from a newer plugin.
template <class T>
T Copy(const T* raw) {
  T table;
  std::memset(&table, 0, sizeof table);
  if (raw == nullptr) return table;
  std::memcpy(&table, raw, std::min<std::size_t>(raw->struct_size, sizeof table));
  table.struct_size = sizeof table;
  return table;
}

// The size of a table that may be missing, which counts as complete.
template <class T>
std::uint32_t SizeOf(const T* raw) {
  return raw == nullptr ? kFloor<T> : raw->struct_size;
}

Result<dtrun_plugin> CheckHead(Identity* identity, const dtrun_plugin* raw) {
  const auto refuse = [&](const std::string& why, std::string_view action) {
    return identity->Refuse(DTRUN_FAILED_PRECONDITION, why, action);
  };
  if (raw == nullptr) return refuse("its entry returned no table", kRebuild);
  constexpr std::size_t kMagic = offsetof(dtrun_plugin, magic);
  if (raw->struct_size >= kMagic + sizeof raw->magic && raw->magic != DTRUN_PLUGIN_MAGIC)
    return refuse("its table has no dtrun magic", kRebuild);
  if (raw->struct_size < kStamps) {
    return refuse(fmt::format("its table has struct_size {}, ABI {} has at least {}", raw->struct_size,
                              AbiText(DTRUN_ABI_MAJOR, DTRUN_ABI_MINOR), kFloor<dtrun_plugin>),
                  kRebuild);
  }
  if (raw->abi_major == 0 && raw->abi_minor_built == 0) {  // ABI 0.0 never existed
    return refuse("it left the ABI numbers of its table zero", kRebuild);
  }
  identity->abi = AbiText(raw->abi_major, raw->abi_minor_built);
  const dtrun_plugin table = Copy(raw);
  const bool has_version =
      raw->abi_major == DTRUN_ABI_MAJOR && raw->struct_size >= offsetof(dtrun_plugin, vendor);
  if (has_version && table.version != nullptr)
    identity->version.assign(table.version, ::strnlen(table.version, kMostTextBytes));

  if (raw->abi_major != DTRUN_ABI_MAJOR || raw->abi_minor_required > DTRUN_ABI_MINOR) {
    const bool newer = raw->abi_major > DTRUN_ABI_MAJOR || raw->abi_minor_built > DTRUN_ABI_MINOR ||
                       raw->abi_minor_required > DTRUN_ABI_MINOR;
    return refuse(fmt::format("it was built for ABI {} and needs {}, and this dtrun has ABI {}",
                              identity->abi, AbiText(raw->abi_major, raw->abi_minor_required),
                              AbiText(DTRUN_ABI_MAJOR, DTRUN_ABI_MINOR)),
                  newer ? "upgrade dtrun or install an older release of the plugin"
                        : "install a newer release of the plugin or rebuild it against this dtrun");
  }
  if (raw->struct_size < kFloor<dtrun_plugin>) {
    return refuse(fmt::format("its table has struct_size {}, ABI {} has at least {}", raw->struct_size,
                              identity->abi, kFloor<dtrun_plugin>),
                  kRebuild);
  }
  return table;
}

// Names flags that require support and that this build does not know, or empty. No such flag is
// defined yet.
std::string CheckFlags(std::uint32_t flags, std::string_view of) {
  const std::uint32_t unknown = flags & DTRUN_FLAGS_MUST_UNDERSTAND;
  if (unknown == 0) return {};
  return fmt::format("its {} has the flags {:#x}, which this dtrun would have to understand", of, unknown);
}

constexpr char kTooLong[] = "(longer than dtrun prints)";

// A text of an option that a terminal would not show as one plain line, or null. Long texts may have several
// lines.
const char* RawText(const dtrun_option& option) {
  for (const char* text : {option.key, option.default_text, option.doc, option.unit, option.min_text,
                           option.max_text, option.since, option.env_alias, option.replaced_by}) {
    if (text != nullptr && ::strnlen(text, kMostTextBytes + 1) > kMostTextBytes) return kTooLong;
    if (text != nullptr && Printable(text) != text) return text;
  }
  for (std::uint64_t i = 0; i < option.choice_count && option.choices != nullptr; ++i) {
    if (option.choices[i] != nullptr && Printable(option.choices[i]) != option.choices[i])
      return option.choices[i];
  }
  if (option.long_doc == nullptr) return nullptr;
  if (::strnlen(option.long_doc, kMostLongTextBytes + 1) > kMostLongTextBytes) return kTooLong;
  std::string lines = option.long_doc;
  std::ranges::replace(lines, '\n', ' ');
  return Printable(lines) == lines ? nullptr : option.long_doc;
}

bool IsOptionKey(std::string_view key) {
  return key.size() <= kMostKeyBytes && key.front() >= 'a' && key.front() <= 'z' &&
         std::ranges::all_of(key, [](char c) { return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '_'; });
}

// The error for keys that replace others, or empty.
std::string CheckReplaced(const std::set<std::string_view>& keys,
                          const std::map<std::string_view, std::string_view>& replaced) {
  for (const auto& [key, other] : replaced) {
    if (!keys.contains(other))
      return fmt::format("its option '{}' is replaced by '{}', which it does not have", key, other);
    std::string_view last = other;
    for (std::size_t steps = 0; steps < replaced.size() && replaced.contains(last); ++steps)
      last = replaced.at(last);
    if (replaced.contains(last)) return fmt::format("its option '{}' is replaced in a circle", key);
  }
  return {};
}

// The error for the options table, or empty.
std::string CheckOptions(const dtrun_plugin& table) {
  if (table.option_count == 0) return {};
  if (table.options == nullptr)
    return fmt::format("it announces {} options but has no table of them", table.option_count);
  const std::size_t stride = table.options->struct_size;
  if (stride < kFloor<dtrun_option> || stride % alignof(dtrun_option) != 0) {
    return fmt::format("its first option says it has {} bytes, an option has {}", stride,
                       sizeof(dtrun_option));
  }
  const auto* first = reinterpret_cast<const char*>(table.options);
  std::set<std::string_view> keys;
  std::map<std::string_view, std::string_view> replaced;
  for (std::uint64_t i = 0; i < table.option_count; ++i) {
    const auto* option = reinterpret_cast<const dtrun_option*>(first + i * stride);
    if (option->key == nullptr || option->key[0] == '\0') return fmt::format("its option {} has no key", i);
    if (const char* raw = RawText(*option); raw != nullptr)
      return fmt::format("its option '{}' has control characters: '{}'",
                         Printable(std::string_view(option->key, ::strnlen(option->key, kMostKeyBytes))),
                         Printable(raw));
    if (!IsOptionKey(option->key)) {
      return fmt::format("its option '{}' is not snake_case of 1 to {} characters",
                         std::string_view(option->key).substr(0, kMostKeyBytes), kMostKeyBytes);
    }
    if (!keys.insert(option->key).second) return fmt::format("it has the option '{}' twice", option->key);
    if (option->replaced_by != nullptr) replaced[option->key] = option->replaced_by;
    if (option->type < DTRUN_TYPE_BOOL || option->type > DTRUN_TYPE_LIST) {
      return fmt::format(
          "its option '{}' has the type {}; this dtrun knows {} to {}, DTRUN_TYPE_BOOL to "
          "DTRUN_TYPE_LIST",
          option->key, option->type, int{DTRUN_TYPE_BOOL}, int{DTRUN_TYPE_LIST});
    }
    if (option->scope < DTRUN_SCOPE_PROCESS || option->scope > DTRUN_SCOPE_JOB) {
      return fmt::format(
          "its option '{}' has the scope {}; this dtrun knows {} to {}, DTRUN_SCOPE_PROCESS "
          "to DTRUN_SCOPE_JOB",
          option->key, option->scope, int{DTRUN_SCOPE_PROCESS}, int{DTRUN_SCOPE_JOB});
    }
    const bool names_backend = (option->flags & DTRUN_OPTION_BACKEND) != 0;
    if (names_backend && (table.kind != DTRUN_KIND_BACKEND || option->type != DTRUN_TYPE_STRING))
      return fmt::format("its option '{}' names a backend, which only a string of a backend can do",
                         option->key);
    std::string unknown = CheckFlags(option->flags, fmt::format("option '{}'", option->key));
    if (!unknown.empty()) return unknown;
  }
  return CheckReplaced(keys, replaced);
}

using Member = std::pair<bool, const char*>;  // whether it is there

// The first missing mandatory member, or null. Of a device, all but describe and stream_capturing are.
const char* MissingMember(const Tables& tables) {
  const dtrun_launcher& launcher = tables.launcher;
  const dtrun_backend& backend = tables.backend;
  const dtrun_device& device = tables.device;
  std::vector<Member> members = {{tables.plugin.init != nullptr, "init"},
                                 {tables.plugin.shutdown != nullptr, "shutdown"}};
  if (tables.plugin.kind == DTRUN_KIND_LAUNCHER) {
    members.push_back(
        {launcher.plan != nullptr || launcher.find_hosts != nullptr || launcher.connect != nullptr,
         "plan', 'find_hosts' or 'connect"});
  } else if (tables.plugin.kind == DTRUN_KIND_DEVICE) {
    members.insert(members.end(), {{device.count != nullptr, "count"},
                                   {device.current != nullptr, "current"},
                                   {device.memory_of != nullptr, "memory_of"},
                                   {device.mem_alloc != nullptr, "mem_alloc"},
                                   {device.mem_free != nullptr, "mem_free"},
                                   {device.stream_create != nullptr, "stream_create"},
                                   {device.stream_destroy != nullptr, "stream_destroy"},
                                   {device.copy != nullptr, "copy"},
                                   {device.event_create != nullptr, "event_create"},
                                   {device.event_destroy != nullptr, "event_destroy"},
                                   {device.event_record != nullptr, "event_record"},
                                   {device.event_test != nullptr, "event_test"},
                                   {device.event_wait != nullptr, "event_wait"},
                                   {device.counter_wait != nullptr, "counter_wait"}});
  } else {
    members.insert(members.end(), {{backend.query_caps != nullptr, "query_caps"},
                                   {backend.comm_create != nullptr, "comm_create"},
                                   {backend.comm_destroy != nullptr, "comm_destroy"},
                                   {backend.enqueue != nullptr, "enqueue"},
                                   {backend.req_test != nullptr, "req_test"},
                                   {backend.req_wait_host != nullptr, "req_wait_host"},
                                   {backend.req_release != nullptr, "req_release"}});
  }
  const auto missing = std::ranges::find(members, false, &Member::first);
  return missing == members.end() ? nullptr : missing->second;
}

// A mask has one bit per kind; bit 63 stays free.
constexpr std::int32_t kLastDeviceKind = 62;

bool IsDeviceKind(std::int32_t kind) { return kind > DTRUN_DEVICE_HOST && kind <= kLastDeviceKind; }

// The error for members that come in pairs, or empty.
std::string CheckPairs(const dtrun_backend& backend) {
  const std::pair<Member, Member> pairs[] = {
      {{backend.group_begin != nullptr, "group_begin"}, {backend.group_end != nullptr, "group_end"}},
      {{backend.mem_alloc != nullptr, "mem_alloc"}, {backend.mem_free != nullptr, "mem_free"}},
      {{backend.mem_register != nullptr, "mem_register"},
       {backend.mem_deregister != nullptr, "mem_deregister"}}};
  for (const auto& [one, other] : pairs) {
    if (one.first == other.first) continue;
    return fmt::format("it has '{}' and no '{}'", one.first ? one.second : other.second,
                       one.first ? other.second : one.second);
  }
  return {};
}

}  // namespace

void RemoveOtherDraft(const dtrun_backend& table, dtrun_backend_caps* caps) {
  if ((table.flags & kOtherDeviceDraft) == 0) return;
  caps->device_kinds &= std::uint64_t{1} << DTRUN_DEVICE_HOST;
  caps->features &= ~(DTRUN_CAP_DETACHED | DTRUN_CAP_CAPTURE | DTRUN_CAP_STREAM_ORDER | DTRUN_CAP_NO_STREAM);
}

Result<Tables> Normalise(Identity* identity, const dtrun_plugin* raw) {
  Result<dtrun_plugin> head = CheckHead(identity, raw);
  if (!head) return std::move(head).error();
  Tables tables;
  tables.plugin = *head;
  dtrun_plugin& plugin = tables.plugin;
  const auto refuse = [&](const std::string& why, std::string_view action) {
    return identity->Refuse(DTRUN_FAILED_PRECONDITION, why, action);
  };

  const File& file = identity->file;
  if (plugin.kind != static_cast<std::int32_t>(file.kind)) {
    const char* says = plugin.kind == DTRUN_KIND_BACKEND    ? "a backend"
                       : plugin.kind == DTRUN_KIND_LAUNCHER ? "a launcher"
                       : plugin.kind == DTRUN_KIND_DEVICE   ? "a device"
                                                            : "of an unknown kind";
    return refuse(
        fmt::format("it says that it is {}, its file name that it is a {}", says, KindText(file.kind)),
        "rename the file or choose another plugin");
  }
  if (plugin.name == nullptr)
    return refuse("its table has no name", "set the member 'name' of its dtrun_plugin");
  if (!IsName(plugin.name) || FileForm(plugin.name) != FileForm(file.name)) {
    return refuse(
        fmt::format("it calls itself '{}'",
                    std::string_view(plugin.name, ::strnlen(plugin.name, kMostKeyBytes))),
        fmt::format("give the file the plugin's own name, libdtrun_{}_<name>.so", KindText(file.kind)));
  }
  for (const char** text : {&plugin.version, &plugin.vendor, &plugin.license, &plugin.summary}) {
    if (*text == nullptr) *text = "";
    if (::strnlen(*text, kMostTextBytes + 1) > kMostTextBytes)
      return refuse(
          fmt::format("its version, vendor, license or summary has more than {} bytes", kMostTextBytes),
          "report it to the plugin's author");
  }
  if (const std::string problem = CheckOptions(plugin); !problem.empty())
    return refuse(problem, "correct its table of options, or upgrade dtrun");

  for (const auto& [size, least, of] :
       {std::tuple(SizeOf(plugin.backend), kFloor<dtrun_backend>, "backend"),
        std::tuple(SizeOf(plugin.launcher), kFloor<dtrun_launcher>, "launcher")}) {
    if (size < least)
      return refuse(
          fmt::format("its {} has {} bytes, ABI {} has at least {}", of, size, identity->abi, least),
          kRebuild);
  }
  const void* const own = file.kind == Kind::kBackend    ? static_cast<const void*>(plugin.backend)
                          : file.kind == Kind::kLauncher ? static_cast<const void*>(plugin.launcher)
                                                         : plugin.device;
  if (own == nullptr)
    return refuse(fmt::format("its table has no {}", KindText(file.kind)),
                  fmt::format("set the member '{}' of its dtrun_plugin", KindText(file.kind)));
  if (file.kind == Kind::kBackend) tables.backend = Copy(plugin.backend);
  if (file.kind == Kind::kLauncher) tables.launcher = Copy(plugin.launcher);
  if (file.kind == Kind::kDevice) tables.device = Copy(plugin.device);
  for (const auto& [flags, of] :
       {std::pair(plugin.flags, "table"), std::pair(tables.backend.flags, "backend"),
        std::pair(tables.launcher.flags, "launcher"), std::pair(tables.device.flags, "device")}) {
    if (const std::string problem = CheckFlags(flags, of); !problem.empty())
      return refuse(problem, "upgrade dtrun or install an older release of the plugin");
  }
  if (file.kind == Kind::kDevice && plugin.device_draft != DTRUN_DEVICE_DRAFT) {
    return refuse(fmt::format("it was built for draft {} of the device ABI, and this dtrun has draft {}",
                              plugin.device_draft, DTRUN_DEVICE_DRAFT),
                  "rebuild it against this dtrun");
  }
  tables.backend.flags = plugin.device_draft == DTRUN_DEVICE_DRAFT ? 0 : kOtherDeviceDraft;
  if (tables.backend.flags != 0) tables.backend.req_wait_stream = nullptr;
  if (const char* member = MissingMember(tables)) {
    return refuse(fmt::format("its member '{}' is missing", member), "ask its author for a complete release");
  }
  if (file.kind == Kind::kDevice && !IsDeviceKind(tables.device.kind)) {
    return refuse(fmt::format("it is for devices of kind {}, which must be 1 to {}", tables.device.kind,
                              kLastDeviceKind),
                  "correct `kind` of its device");
  }
  if (const std::string problem = CheckPairs(tables.backend); !problem.empty()) {
    return refuse(problem, "ask its author for a release with both or none");
  }
  return tables;
}

}  // namespace dtrun::plugin
