#include "core/plugin/host.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "core/base/fault_stack.h"
#include "core/base/text.h"
#include "core/options/snapshot.h"
#include "core/plugin/plugin_code.h"
#include "core/plugin/services.h"
#include "sdk/services/services.h"

namespace dtrun::plugin {
namespace {

// ---- memory ----------------------------------------------------------------------------

void* Allocate(const dtrun_host*, std::uint64_t bytes, std::uint64_t alignment) {
  void* memory = nullptr;
  if (!std::has_single_bit(alignment)) return nullptr;
  const int result = ::posix_memalign(&memory, std::max<std::uint64_t>(alignment, sizeof(void*)),
                                      std::max<std::uint64_t>(bytes, 1));
  return result == 0 ? memory : nullptr;
}

void Release(const dtrun_host*, void* memory) { std::free(memory); }

constexpr dtrun_memory_service kMemory{sizeof(dtrun_memory_service), 0, Allocate, Release};

// ---- clock -----------------------------------------------------------------------------

template <class Clock>
std::int64_t NowNs(const dtrun_host*) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

constexpr dtrun_clock_service kClock{sizeof(dtrun_clock_service), 0, NowNs<std::chrono::steady_clock>,
                                     NowNs<std::chrono::system_clock>};

// ---- threads ---------------------------------------------------------------------------

// Signals raised by a fault of the thread itself; blocking them would hide the fault.
constexpr int kSynchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};

void OnThreadStart(const dtrun_host*, const char* name) {
  CountThread(__builtin_return_address(0));
  HaveFaultStack();
  if (name != nullptr) {
    char cut[16];  // the kernel's limit
    const std::size_t size = std::min(std::strlen(name), sizeof cut - 1);
    std::memcpy(cut, name, size);
    cut[size] = '\0';
    ::pthread_setname_np(::pthread_self(), cut);
  }
  sigset_t blocked;
  ::sigfillset(&blocked);
  for (const int signal : kSynchronous) ::sigdelset(&blocked, signal);
  ::pthread_sigmask(SIG_SETMASK, &blocked,
                    nullptr);  // a fault that its creator had blocked would end it unseen
}

// Name, mask, count and stack for faults end with the thread; core has no other state for it.
void OnThreadStop(const dtrun_host*) {}

constexpr dtrun_threads_service kThreads{sizeof(dtrun_threads_service), 0, OnThreadStart, OnThreadStop};

// ---- health ----------------------------------------------------------------------------

struct HealthHooks {
  std::function<bool()> should_stop;
  std::function<void(int, std::string_view)> report;
};

// Hooks are copied under the lock and called outside it, so a hook may call back.
struct Health {
  std::mutex mutex;
  std::shared_ptr<const HealthHooks> hooks = std::make_shared<HealthHooks>();

  static Health& Get() {
    static auto* health = new Health;  // plugin threads may report after main has returned
    return *health;
  }
  std::shared_ptr<const HealthHooks> Hooks() {
    const std::lock_guard lock(mutex);
    return hooks;
  }
};

std::int32_t ShouldStop(const dtrun_host*) {
  const auto hooks = Health::Get().Hooks();
  return hooks->should_stop != nullptr && hooks->should_stop() ? 1 : 0;
}

void ReportPeer(const dtrun_host*, dtrun_kv* kv, std::int32_t peer, dtrun_string what) {
  constexpr std::size_t kMostBytes = 4096;
  const std::string text = Printable(View(what).substr(0, kMostBytes));
  if (kv != nullptr) {
    if (kv->report) kv->report(peer, text);
    return;
  }
  const auto hooks = Health::Get().Hooks();
  if (hooks->report != nullptr) hooks->report(peer, text);
}

constexpr dtrun_health_service kHealth{sizeof(dtrun_health_service), 0, ShouldStop, ReportPeer};

// ---- the table -------------------------------------------------------------------------

const void* GetService(const dtrun_host*, const char* id) {
  struct Service {
    const char* id;
    const void* table;
  };
  static const Service kServices[] = {
      {DTRUN_LOG_SERVICE, LogService()}, {DTRUN_MEMORY_SERVICE, &kMemory},
      {DTRUN_KV_SERVICE, KvService()},   {DTRUN_OPTIONS_SERVICE, options::OptionsService()},
      {DTRUN_CLOCK_SERVICE, &kClock},    {DTRUN_THREADS_SERVICE, &kThreads},
      {DTRUN_HEALTH_SERVICE, &kHealth},  {DTRUN_PLUGINS_SERVICE, PluginsService()},
  };
  if (id == nullptr) return nullptr;
  for (const Service& service : kServices) {
    if (std::strcmp(service.id, id) == 0) return service.table;
  }
  return services::Find(id);
}

constexpr dtrun_host MakeHost(Kind kind, bool in_probe) {
  constexpr std::string_view kProduct = "dtrun " DTRUN_VERSION;
  dtrun_host host{};
  host.struct_size = sizeof host;
  host.abi_major = DTRUN_ABI_MAJOR;
  host.abi_minor = DTRUN_ABI_MINOR;
  host.kind = static_cast<std::int32_t>(kind);
  host.in_probe = in_probe ? 1 : 0;
  host.product = {kProduct.data(), kProduct.size()};
  host.get_service = GetService;
  return host;
}

// By kind, in the order of kKinds, then in_probe.
constexpr dtrun_host kHosts[][2] = {{MakeHost(Kind::kBackend, false), MakeHost(Kind::kBackend, true)},
                                    {MakeHost(Kind::kLauncher, false), MakeHost(Kind::kLauncher, true)},
                                    {MakeHost(Kind::kDevice, false), MakeHost(Kind::kDevice, true)}};

}  // namespace

const dtrun_host* HostTable(Kind kind, bool in_probe) {
  return &kHosts[std::ranges::find(kKinds, kind) - std::begin(kKinds)][in_probe];
}

const dtrun_memory_service* MemoryService() { return &kMemory; }

void SetHealthHooks(std::function<bool()> should_stop, std::function<void(int, std::string_view)> report) {
  auto hooks = std::make_shared<const HealthHooks>(HealthHooks{std::move(should_stop), std::move(report)});
  const std::lock_guard lock(Health::Get().mutex);
  Health::Get().hooks = std::move(hooks);
}

}  // namespace dtrun::plugin
