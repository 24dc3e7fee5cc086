#include "core/plugin/host.h"

#include <gmock/gmock.h>
#include <pthread.h>

#include <csignal>
#include <thread>

#include "core/plugin/services.h"

namespace dtrun::plugin {
namespace {

template <class Table>
const Table* Service(const char* id) {
  const dtrun_host* const host = HostTable(Kind::kBackend, false);
  return static_cast<const Table*>(host->get_service(host, id));
}

TEST(Host, SaysWhatItIsAndWhatItExpects) {
  const dtrun_host* host = HostTable(Kind::kLauncher, true);
  EXPECT_EQ(host->struct_size, sizeof(dtrun_host));
  EXPECT_EQ(host->abi_minor, DTRUN_ABI_MINOR);
  EXPECT_EQ(host->kind, DTRUN_KIND_LAUNCHER);
  EXPECT_EQ(host->in_probe, 1);
  EXPECT_EQ(HostTable(Kind::kBackend, false)->in_probe, 0);
  EXPECT_THAT(std::string(host->product.data), ::testing::StartsWith("dtrun "));
}

TEST(Host, HasEveryServiceOfThisAbiAndNoOther) {
  for (const char* id :
       {DTRUN_LOG_SERVICE, DTRUN_MEMORY_SERVICE, DTRUN_KV_SERVICE, DTRUN_OPTIONS_SERVICE, DTRUN_CLOCK_SERVICE,
        DTRUN_THREADS_SERVICE, DTRUN_HEALTH_SERVICE, DTRUN_KERNELS_SERVICE, DTRUN_COLLECTIVES_SERVICE,
        DTRUN_CALLS_SERVICE, DTRUN_MEMBERSHIP_SERVICE, DTRUN_PLUGINS_SERVICE}) {
    EXPECT_NE(Service<void>(id), nullptr) << id;
  }
  EXPECT_EQ(Service<void>("dtrun.log/2"), nullptr);
  EXPECT_EQ(Service<void>(nullptr), nullptr);
}

TEST(Host, GivesAlignedMemory) {
  const auto* memory = Service<dtrun_memory_service>(DTRUN_MEMORY_SERVICE);
  void* block = memory->allocate(nullptr, 0, 4096);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 4096, 0u);
  memory->release(nullptr, block);
  memory->release(nullptr, nullptr);
  EXPECT_EQ(memory->allocate(nullptr, 64, 24), nullptr);  // not a power of two
}

TEST(Host, HasAMonotonicAndAWallClock) {
  const auto* clock = Service<dtrun_clock_service>(DTRUN_CLOCK_SERVICE);
  const std::int64_t before = clock->monotonic_ns(nullptr);
  EXPECT_GE(clock->monotonic_ns(nullptr), before);
  EXPECT_GT(clock->wall_ns(nullptr), std::int64_t{1'600'000'000} * 1'000'000'000);
}

TEST(Host, NamesPluginThreadsAndBlocksSignalsButNotFaults) {
  const auto* threads = Service<dtrun_threads_service>(DTRUN_THREADS_SERVICE);
  char name[16] = {};
  sigset_t mask;
  std::thread([&] {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    threads->on_start(nullptr, "a-name-longer-than-fifteen");
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    threads->on_stop(nullptr);
  }).join();
  EXPECT_STREQ(name, "a-name-longer-t");
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1})
    EXPECT_EQ(::sigismember(&mask, signal), 1) << signal;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    EXPECT_EQ(::sigismember(&mask, signal), 0) << signal;
}

TEST(Host, PassesHealthReportsToTheRuntimeWhenThereIsOne) {
  const auto* health = Service<dtrun_health_service>(DTRUN_HEALTH_SERVICE);
  EXPECT_EQ(health->should_stop(nullptr), 0);
  health->report_peer(nullptr, nullptr, 1, {"gone", 4});  // no hook is set

  int peer = -2;
  std::string what;
  SetHealthHooks([] { return true; },
                 [&](int p, std::string_view w) {
                   peer = p;
                   what = w;
                 });
  EXPECT_EQ(health->should_stop(nullptr), 1);
  health->report_peer(nullptr, nullptr, 5, {"re\x1bset", 6});
  SetHealthHooks(nullptr, nullptr);
  EXPECT_EQ(peer, 5);
  EXPECT_EQ(what, "re\\u001bset");
  EXPECT_EQ(health->should_stop(nullptr), 0);
}

}  // namespace
}  // namespace dtrun::plugin
