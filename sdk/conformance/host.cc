#include "host.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "fill_error.h"
#include "sdk/services/services.h"
#include "stack.h"
#include "thread_watch.h"

namespace dtrun::conformance {
namespace {

constexpr std::size_t kThreadNameBytes = 15;

std::atomic<std::uint64_t> logged_bytes{0};

std::int32_t LogEnabled(const dtrun_host*, std::int32_t level) { return level >= DTRUN_LOG_WARN ? 1 : 0; }
void LogWrite(const dtrun_host* host, std::int32_t level, const char* topic, dtrun_string text) {
  if (!LogEnabled(host, level)) return;
  const int bytes = std::fprintf(stderr, "%s: %.*s\n", topic == nullptr ? "" : topic,
                                 static_cast<int>(text.size), text.data);
  if (bytes > 0) logged_bytes += static_cast<std::uint64_t>(bytes);
}

template <class Clock>
std::int64_t Now(const dtrun_host*) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

// A fault of the thread itself raises these; blocked, they would hide it.
constexpr int kSynchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};

void ThreadStart(const dtrun_host*, const char* name) {
  NoteDeclared();
  if (name == nullptr || std::strlen(name) > kThreadNameBytes) {
    ADD_FAILURE() << "a thread calls itself '" << (name == nullptr ? "(null)" : name)
                  << "'; its name has at most 15 bytes (H10)";
  } else {
    pthread_setname_np(pthread_self(), name);
  }
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int signal : kSynchronous) sigdelset(&blocked, signal);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}
void ThreadStop(const dtrun_host*) { NoteEnded(); }

std::mutex reports_mutex;
std::vector<std::pair<int, std::string>> reports;

std::int32_t ShouldStop(const dtrun_host*) { return 0; }
void ReportPeer(const dtrun_host*, dtrun_kv* kv, std::int32_t peer, dtrun_string what) {
  if (kv != nullptr && kv->quiet) return;
  if (kv != nullptr && !kv->ranks.empty()) {
    const auto index = static_cast<std::size_t>(peer);  // of -1, which is an unknown rank, behind the end
    peer = index < kv->ranks.size() ? kv->ranks[index] : -1;
  }
  const std::lock_guard lock(reports_mutex);
  reports.emplace_back(peer, std::string(what.data, what.size));
}

using Entry = dtrun_options::Entry;

using OptionTypes = std::initializer_list<std::int32_t>;

// The entry of `key`, which a getter of `types` asks for; empty: any type, and it need not be set.
dtrun_status Find(const dtrun_options* options, const char* key, OptionTypes types, const Entry** out,
                  dtrun_error* err) {
  if (options == nullptr || key == nullptr)
    return FillError(err, DTRUN_INVALID_ARGUMENT, "the options or the key are a null pointer");
  const auto found = options->entries.find(key);
  if (found == options->entries.end()) {
    return FillError(err, DTRUN_INVALID_ARGUMENT, std::string("the plugin has no option '") + key + "'");
  }
  *out = &found->second;
  if (types.size() == 0) return DTRUN_OK;
  if (std::find(types.begin(), types.end(), found->second.option.type) == types.end()) {
    return FillError(err, DTRUN_INVALID_ARGUMENT,
                     std::string("option '") + key + "' has a type that this getter does not read");
  }
  if (found->second.set) return DTRUN_OK;
  return FillError(err, DTRUN_NOT_FOUND, std::string("option '") + key + "' is unset and has no default");
}

dtrun_status GetInt(const dtrun_host*, const dtrun_options* options, const char* key, std::int64_t* out,
                    dtrun_error* err) {
  const Entry* entry = nullptr;
  const OptionTypes types = {DTRUN_TYPE_BOOL,  DTRUN_TYPE_INT,      DTRUN_TYPE_UINT,
                             DTRUN_TYPE_BYTES, DTRUN_TYPE_DURATION, DTRUN_TYPE_ENUM};
  const dtrun_status status = Find(options, key, types, &entry, err);
  if (status == DTRUN_OK) *out = entry->value.integer;
  return status;
}

dtrun_status GetFloat(const dtrun_host*, const dtrun_options* options, const char* key, double* out,
                      dtrun_error* err) {
  const Entry* entry = nullptr;
  const dtrun_status status = Find(options, key, {DTRUN_TYPE_FLOAT}, &entry, err);
  if (status == DTRUN_OK) *out = entry->value.number;
  return status;
}

dtrun_status GetString(const dtrun_host*, const dtrun_options* options, const char* key, dtrun_string* out,
                       dtrun_error* err) {
  const Entry* entry = nullptr;
  const dtrun_status status =
      Find(options, key, {DTRUN_TYPE_STRING, DTRUN_TYPE_PATH, DTRUN_TYPE_ENUM}, &entry, err);
  if (status == DTRUN_OK) *out = {entry->text.c_str(), entry->text.size()};
  return status;
}

dtrun_status GetList(const dtrun_host*, const dtrun_options* options, const char* key,
                     const dtrun_string** out, std::uint64_t* count, dtrun_error* err) {
  const Entry* entry = nullptr;
  const dtrun_status status = Find(options, key, {DTRUN_TYPE_LIST}, &entry, err);
  if (status != DTRUN_OK) return status;
  *out = entry->items.data();
  *count = entry->items.size();
  return DTRUN_OK;
}

dtrun_status GetOrigin(const dtrun_host*, const dtrun_options* options, const char* key, std::int32_t* out,
                       dtrun_string* place, dtrun_error* err) {
  const Entry* entry = nullptr;
  const dtrun_status status = Find(options, key, {}, &entry, err);
  if (status != DTRUN_OK) return status;
  *out = entry->given ? DTRUN_ORIGIN_COMMAND_LINE : DTRUN_ORIGIN_DEFAULT;
  *place = entry->given ? dtrun_string{"--set", 5} : dtrun_string{"", 0};
  return DTRUN_OK;
}

const void* GetService(const dtrun_host*, const char* id) {
  static const dtrun_log_service log{sizeof(dtrun_log_service), 0, &LogEnabled, &LogWrite};
  static const dtrun_clock_service clock{sizeof(dtrun_clock_service), 0, &Now<std::chrono::steady_clock>,
                                         &Now<std::chrono::system_clock>};
  static const dtrun_threads_service threads{sizeof(dtrun_threads_service), 0, &ThreadStart, &ThreadStop};
  static const dtrun_health_service health{sizeof(dtrun_health_service), 0, &ShouldStop, &ReportPeer};
  static const dtrun_options_service options{
      sizeof(dtrun_options_service), 0, &GetInt, &GetFloat, &GetString, &GetList, &GetOrigin};
  if (id == nullptr) return nullptr;
  const std::string_view name = id;
  if (name == DTRUN_LOG_SERVICE) return &log;
  if (name == DTRUN_MEMORY_SERVICE) return MemoryService();
  if (name == DTRUN_KV_SERVICE) return KvService();
  if (name == DTRUN_CLOCK_SERVICE) return &clock;
  if (name == DTRUN_THREADS_SERVICE) return &threads;
  if (name == DTRUN_HEALTH_SERVICE) return &health;
  if (name == DTRUN_OPTIONS_SERVICE) return &options;
  if (name == DTRUN_PLUGINS_SERVICE) return PluginsService();
  return services::Find(id);
}

// Of those that are set, as the plugin sees them.
void ReadValues(dtrun_options* options) {
  for (auto& [key, entry] : options->entries) {
    if (!entry.set) continue;
    entry.value = ReadOption(entry.option, entry.text);
    if (entry.option.type == DTRUN_TYPE_PATH)
      entry.text = std::filesystem::absolute(entry.text).lexically_normal();
    entry.items.clear();
    for (const std::string& item : entry.value.items) entry.items.push_back({item.c_str(), item.size()});
  }
}

}  // namespace

const dtrun_host* Host(std::int32_t kind) {
  static constexpr std::string_view kProduct = "dtrun conformance";
  static constexpr auto make = [](std::int32_t of) {
    return dtrun_host{sizeof(dtrun_host),
                      0,
                      DTRUN_ABI_MAJOR,
                      DTRUN_ABI_MINOR,
                      of,
                      of == DTRUN_KIND_LAUNCHER,
                      {kProduct.data(), kProduct.size()},
                      &GetService};
  };
  static const dtrun_host backend = make(DTRUN_KIND_BACKEND), launcher = make(DTRUN_KIND_LAUNCHER),
                          device = make(DTRUN_KIND_DEVICE);
  if (kind == DTRUN_KIND_DEVICE) return &device;
  return kind == DTRUN_KIND_LAUNCHER ? &launcher : &backend;
}

std::unique_ptr<dtrun_options> DefaultOptions(const dtrun_plugin& plugin) {
  auto options = std::make_unique<dtrun_options>();
  for (std::uint64_t i = 0; i < plugin.option_count; ++i) {
    const dtrun_option option = OptionAt(plugin.options, i);
    Entry& entry = options->entries[option.key];
    entry.option = option;
    entry.set = option.default_text != nullptr;
    if (entry.set) entry.text = option.default_text;
  }
  ReadValues(options.get());
  return options;
}

std::unique_ptr<dtrun_options> MakeOptions(const dtrun_plugin& plugin,
                                           const std::map<std::string, std::string>& values) {
  auto options = DefaultOptions(plugin);
  for (const auto& [key, value] : values) {
    if (key.find('.') != key.npos) {
      options->of_others[key] = value;
      continue;
    }
    const auto found = options->entries.find(key);
    if (found == options->entries.end())
      throw std::invalid_argument("the plugin has no option '" + key + "'");
    found->second.set = found->second.given = true;
    found->second.text = value;
  }
  ReadValues(options.get());
  if (const std::string missing = MissingOption(plugin, values); !missing.empty())
    throw std::invalid_argument(missing);
  return options;
}

std::string MissingOption(const dtrun_plugin& plugin, const std::map<std::string, std::string>& values) {
  for (std::uint64_t i = 0; i < plugin.option_count; ++i) {
    const dtrun_option option = OptionAt(plugin.options, i);
    const bool required = (option.flags & DTRUN_OPTION_REQUIRED) != 0;
    if (required && values.count(option.key) == 0)
      return std::string("option '") + option.key + "' is required and has no value";
  }
  return {};
}

std::uint64_t LoggedBytes() { return logged_bytes; }

std::vector<std::pair<int, std::string>> TakePeerReports() {
  const std::lock_guard lock(reports_mutex);
  return std::exchange(reports, {});
}

}  // namespace dtrun::conformance
