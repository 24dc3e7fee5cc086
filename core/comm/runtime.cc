#include "core/comm/runtime.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/base/error_id.h"
#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/comm/agreement.h"
#include "core/comm/hierarchy/hierarchy.h"
#include "core/comm/plugin_call.h"
#include "core/comm/self.h"
#include "core/comm/shm/backend.h"
#include "core/comm/shm/memory.h"
#include "core/contract/environment.h"
#include "core/hosts/this_machine.h"
#include "core/log/log.h"
#include "core/options/snapshot.h"
#include "core/plugin/host.h"
#include "core/plugin/plugin_code.h"
#include "core/plugin/search_path.h"
#include "core/plugin/services.h"
#include "core/store/connection.h"
#include "dtrun/plugin/backend.hpp"

namespace dtrun::comm {
namespace {

// Raises the limit as NCCL does: each communicator of n ranks may take n descriptors, and the soft limit is
// 1024 or less. Not before a program joins, as select() cannot take numbers from 1024 on. Not beyond
// systemd's default, as some programs close all descriptors up to the limit.
void RaiseOpenFiles() {
  constexpr rlim_t kEnough = 512 * 1024;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min(limit.rlim_max, kEnough);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

constexpr log::Room kCommLog("comm");

void Warn(const std::string& what) { kCommLog.Write(log::Level::kWarn, what); }

// Never destroyed: a program that ends without dtrun_finalize must not run our
// destructors while other threads still communicate.
struct Process {
  std::mutex mutex;  // of init and finalize
  int count = 0;
  std::atomic<Runtime*> runtime = nullptr;
  std::atomic<bool> forked = false;
};

Process& The() {
  static auto* const process = new Process;
  return *process;
}

void AfterForkInChild() {
  if (The().runtime.load() != nullptr) The().forked = true;
}

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::Join(Environment environment) {
  std::unique_ptr<Runtime> runtime(new Runtime(std::move(environment)));
  Status joined = runtime->environment_.launched ? runtime->JoinJob() : runtime->JoinAlone();
  if (!joined) return std::move(joined).error();
  return runtime;
}

Runtime::~Runtime() {
  const bool joined = world_ != nullptr;
  *ending_ = true;
  family_.reset();
  world_.reset();
  if (stuck_ && devices_ != nullptr) devices_->LeaveRunning();
  devices_.reset();
  if (engine_ != nullptr) shm::EnginePlugin().shutdown(engine_);
  if (instance_ != nullptr && !stuck_) {
    const PluginCall call(fmt::format("backend '{}', in its shutdown", environment_.backend.name),
                          PluginLimit(), PluginReports());
    Guard(environment_.backend.name, "in its shutdown", PluginReports(),
          [&] { plugin_->table().shutdown(instance_); });
    const std::string who = fmt::format("backend '{}'", environment_.backend.name);
    if (const int left = plugin::LivingThreads(who.c_str()); left > 0)
      Warn(fmt::format("{} has left {} of its threads running after its shutdown; report it to its author",
                       who, left));
  }
  plugin::SetHealthHooks({}, {});
  plugin::SetCallWatch({});
  // A rank that failed to join does not sign off, so that the agent sees it as failed.
  if (turn_) turn_->End();
  if (joined && client_ != nullptr) client_->Goodbye();
}

Status Runtime::JoinAlone() {
  static bool told = false;  // once; init is never called twice at a time
  if (const std::string other = OtherLauncherText(std::getenv); !other.empty() && !std::exchange(told, true))
    PrintMessage("dtrun: dtrun_init: warning: {}\n", other);
  Making making;
  making.backend = SelfBackend();
  making.backend_name = "self";
  making.name = "world";
  making.hosts = {0};
  devices_ = std::make_unique<RankDevices>(environment_, Carrier{making.backend, nullptr, "self"}, Carrier{},
                                           Nanoseconds(-1), PluginReport());
  making.devices = devices_.get();
  Result<std::unique_ptr<dtrun_comm>> world = dtrun_comm::Create(std::move(making));
  if (!world) return std::move(world).error();
  world_ = *std::move(world);
  family_ = std::make_unique<Family>(Family::Spaces());
  return {};
}

Status Runtime::JoinJob() {
  const Environment& e = environment_;
  if (e.backend.name == "none") {
    return Error{DTRUN_FAILED_PRECONDITION,
                 "init: this job has no backend: backend.name is \"none\", the default of dtrun torchrun; "
                 "name one, such as \"gloo\", in the config or with DTRUN_CONFIG_BACKEND_NAME=gloo"};
  }
  RaiseOpenFiles();
  const Result<log::Options> logged =
      log::ParseOptions(std::getenv("DTRUN_LOG"), std::getenv("DTRUN_LOG_FORMAT"));
  // dtrun has warned of an invalid value.
  log::Start(logged ? *logged : log::Options(), hosts::HostName(), e.rank);
  // A process that forked its ranks has left them the number of the first one.
  const std::string rank = std::to_string(e.rank);
  if (const char* served = std::getenv("PMIX_RANK"); served != nullptr && served != rank) {
    ::setenv("PMIX_RANK", rank.c_str(), 1);
  }

  Result<std::shared_ptr<store::Client>> client =
      store::Client::Connect({e.store, e.job_key, e.generation, e.rank});
  if (!client) return std::move(client).error();
  client_ = *std::move(client);
  Result<Turn> turn = Turn::Take(client_->Space("turns/"), e.rank);
  if (!turn) return std::move(turn).error();
  turn_ = *std::move(turn);
  const std::string time = turn_->number() == 0 ? "" : fmt::format("again.{}/", turn_->number());
  const auto space = [to = client_, time](std::string prefix) { return to->Space(time + std::move(prefix)); };
  OpenSpaces(space, "world");
  plugin::SetHealthHooks([ending = ending_] { return ending->load(); }, HealthReport());
  plugin::SetCallWatch([report = PluginReports()](std::string call) {
    return std::make_shared<PluginCall>(std::move(call), Nanoseconds(-1), report);
  });
  if (Status opened = OpenRecorder(); !opened) return opened;
  trace_ = OpenTrace(e, Warn);
  // PMIx gives a process of several ranks the number of the first one.
  if (e.own_launcher && std::getenv("PMIX_RANK") != nullptr) {
    ::setenv("PMIX_RANK", std::to_string(e.rank).c_str(), 1);
  }
  if (Status ready = Prepare(*space("builds/world/")); !ready) return RefuseWorld(std::move(ready).error());
  Result<std::unique_ptr<dtrun_comm>> world = MakeWorld(space);
  if (!world) {
    const Error& error = world.error();
    if (error.code == DTRUN_TIMEOUT || error.code == DTRUN_REMOTE_FAILURE) client_->Report(error);
    return error;
  }
  world_ = *std::move(world);
  family_ = std::make_unique<Family>(space);
  kCommLog.Info("joined job '{}', generation {}, as rank {} of {} over {}", e.job, e.generation, e.rank,
                e.world_size, e.backend.name);
  return {};
}

void Runtime::OpenSpaces(const Spaces& space, const std::string& world) {
  kv_ = space("comm/" + world + "/");
  device_kv_ = space("device/" + world + "/");
  making_kv_ = space("making/" + world + "/");
}

// Without a recorder this process's calls cannot be seen from outside, but it can still run.
Status Runtime::OpenRecorder() {
  const Environment& e = environment_;
  if (e.recorder.empty()) return {};
  Result<std::unique_ptr<contract::Recorder>> recorder =
      contract::Recorder::Open(e.recorder, e.rank, turn_->number());
  if (!recorder && recorder.error().code != DTRUN_FAILED_PRECONDITION) {
    const auto socket = std::filesystem::path(e.store).replace_filename(contract::kRecorderSocket);
    const Result<UniqueFd> given = store::ReceiveDescriptor(socket);
    if (given) recorder = contract::Recorder::Open(given->get(), socket.string(), e.rank, turn_->number());
  }
  if (recorder) {
    recorder_ = *std::move(recorder);
    return {};
  }
  if (recorder.error().code == DTRUN_FAILED_PRECONDITION) return std::move(recorder).error();
  Warn(fmt::format("dtrun will not see where rank {} is when the job hangs, nor calls that differ: {}",
                   e.rank, recorder.error().text));
  return {};
}

Error Runtime::RefuseWorld(Error why) {
  Making none;  // the others wait in theirs
  none.name = "world";
  none.rank = environment_.rank;
  none.size = environment_.world_size;
  none.making_kv = making_kv_.get();
  return Refuse(none, kv_.get(), std::move(why));
}

Result<std::unique_ptr<dtrun_comm>> Runtime::MakeWorld(const Spaces& space) {
  if (engine_ == nullptr) return dtrun_comm::Create(WorldMaking());
  constexpr char kApart[] = "apart";
  const Environment& e = environment_;
  const std::unique_ptr<dtrun_kv> sharing = space("sharing/world/");
  shm::Reach reach;
  const Result<std::string> apart = reach.WhyNot(*sharing, e.rank, e.host());
  if (!apart) return RefuseWorld(apart.error());
  if (apart->empty()) {
    Result<std::unique_ptr<dtrun_comm>> world = dtrun_comm::Create(WorldMaking());
    if (world || !sharing->TryGet(kApart)) return world;
  } else {
    const Result<bool> first = sharing->CompareSet(kApart, false, {}, *apart);
    if (!first) return RefuseWorld(first.error());
    if (*first) {
      Warn(
          fmt::format("the ranks of a host cannot share memory, so all use {} instead of shm: {}; for shared "
                      "memory run dtrun itself in the container, or set comm.local = \"none\" to expect this",
                      e.backend.name, *apart));
    }
    (void)RefuseWorld(Error{DTRUN_FAILED_PRECONDITION, *apart});
  }
  shm::EnginePlugin().shutdown(std::exchange(engine_, nullptr));
  OpenSpaces(space, "world.apart");
  return dtrun_comm::Create(WorldMaking());
}

Status Runtime::Prepare(dtrun_kv& builds) {
  if (Status started = StartBackend(); !started) return started;
  const dtrun_plugin& table = plugin_->table();
  std::string mine = fmt::format("libdtrun {}, {} {} of ABI {}.{}", DTRUN_VERSION, environment_.backend.name,
                                 Printable(table.version), table.abi_major, table.abi_minor_built);
  const auto below = plugin::LoadBelow(options_, false);
  if (!below) return below.error();
  for (const plugin::Plugin* one : *below)
    mine += fmt::format(" over {} {}", one->file().name, Printable(one->table().version));
  if (Status same = CheckBuilds(builds, environment_.rank, mine); !same) return same;
  const Carrier backend{plugin_->backend(), instance_, environment_.backend.name};
  const Result<dtrun_backend_caps> caps = CapsOf(backend, PluginLimit(), PluginReports());
  if (!caps) return caps.error();
  if (Status same = CheckCapabilities(builds, environment_.rank, backend.name, *caps); !same) return same;
  return StartEngine((caps->device_kinds & sdk::Bits({DTRUN_DEVICE_HOST})) != 0);
}

PluginReport Runtime::PluginReports() const {
  return [to = client_](const Error& failure) { to->Report(failure); };
}

// Plugins report a text and at most one rank.
std::function<void(int, std::string_view)> Runtime::HealthReport() const {
  return [to = client_, ranks = environment_.world_size](int peer, std::string_view what) {
    to->Report(
        Error{DTRUN_REMOTE_FAILURE, std::string(what), peer < ranks ? peer : -1, ErrorId::kPeerFailed});
  };
}

Nanoseconds Runtime::PluginLimit() const {
  const Nanoseconds timeout = environment_.timeout;
  return timeout.count() < 0 ? timeout : timeout + PluginCall::kBeyondTimeout;
}

Status Runtime::StartBackend() {
  hang_watch_ = std::make_unique<HangWatch>(PluginReports());
  Result<StartedPlugin> started =
      StartPlugin(plugin::Kind::kBackend, environment_.backend, contract::kBackendOptions, options_,
                  PluginLimit(), PluginReports());
  if (!started) return std::move(started).error();
  plugin_ = started->plugin;
  instance_ = started->instance;
  return {};
}

Status Runtime::StartEngine(bool of_host) {
  if (!environment_.shared_memory) return {};
  if (!of_host) return {};  // shared memory is host memory
  static const dtrun_options kNoOptions;
  PluginError error;
  const dtrun_status status = sdk::InitPlugin(
      shm::EnginePlugin(), plugin::HostTable(plugin::Kind::kBackend, false), &kNoOptions, &engine_, &error);
  if (status == DTRUN_OK) return {};
  engine_ = nullptr;
  return Explained(status, error, "joining the ranks of this host in shared memory");
}

Making Runtime::WorldMaking() {
  const Environment& e = environment_;
  Making making;
  making.backend = plugin_->backend();
  making.instance = instance_;
  const std::string stack = options::StackText(e.backend.name, options_);
  making.backend_name = stack;
  making.extensions = {&plugin_->table()};
  if (engine_ != nullptr && e.hosts() > 1) {
    layers_ = {*shm::EnginePlugin().backend,
               engine_,
               plugin_->backend(),
               instance_,
               e.host(),
               plugin::HostTable(plugin::Kind::kBackend, false)};
    layers_.wire_plugin = {sizeof(dtrun_wrapped), 0, &plugin_->table(), instance_};
    making.extensions = {nullptr, &WireBelow};
    making.backend = HierarchyBackend();
    making.instance = AsInstance(&layers_);
    making.backend_name = "shm+" + stack;
  } else if (engine_ != nullptr) {
    making.extensions = {};
    making.backend = *shm::EnginePlugin().backend;
    making.instance = engine_;
    making.backend_name = "shm";
  }
  making.name = "world";
  making.rank = e.rank;
  making.size = e.world_size;
  making.host_count = e.hosts();
  making.node_rank = e.host();
  making.hosts = e.HostOfRanks();
  making.interface_name = e.interface_name;
  making.address = e.address;
  making.local_processors = e.local_processors;
  making.generation = e.generation;
  making.kv = kv_.get();
  devices_ =
      std::make_unique<RankDevices>(e, Carrier{making.backend, making.instance, making.backend_name},
                                    Carrier{plugin_->backend(), instance_, stack, false, {&plugin_->table()}},
                                    PluginLimit(), PluginReports());
  making.devices = devices_.get();
  making.device_kv = device_kv_.get();
  making.making_kv = making_kv_.get();
  making.recorder = recorder_.get();
  making.trace = trace_.get();
  making.timeout = e.timeout;
  making.report = PluginReports();
  making.report_of_part = [to = client_](const Error& failure, const std::vector<int>& members) {
    to->Report(failure, members);
  };
  kv_->report = device_kv_->report = HealthReport();
  making.aborted = [to = client_, ending = ending_](std::string_view reason) {
    *ending = true;
    to->Abort(reason);
  };
  making.warn = Warn;
  making.unheard = [report = making.report](const std::string& what) { EndProcess(what, report); };
  making.stuck = [this] { stuck_ = true; };
  return making;
}

Status Init() {
  Process& process = The();
  if (process.forked) return ForkError();
  const std::lock_guard lock(process.mutex);
  if (process.count > 0) {
    ++process.count;
    return {};
  }
  static const int watching = ::pthread_atfork(nullptr, nullptr, AfterForkInChild);
  if (watching != 0) return Error::System("watch for forks", watching);

  Result<Environment> environment = ReadEnvironment([](const char* name) { return std::getenv(name); });
  if (!environment) return std::move(environment).error();
  Result<std::unique_ptr<Runtime>> runtime = Runtime::Join(*std::move(environment));
  if (!runtime) return std::move(runtime).error();
  process.runtime = std::move(runtime).value().release();
  process.count = 1;
  return {};
}

void Finalize() {
  Process& process = The();
  if (process.forked) return;
  const std::lock_guard lock(process.mutex);
  if (process.count == 0 || --process.count > 0) return;
  delete process.runtime.exchange(nullptr);
}

Runtime* Current() { return The().runtime.load(std::memory_order_acquire); }

bool Forked() { return The().forked.load(std::memory_order_relaxed); }

Error ForkError() {
  return Error{DTRUN_FAILED_PRECONDITION,
               "this process was forked from a rank after init, and a forked child cannot communicate; start "
               "workers before init, or with the spawn or forkserver method"};
}

}  // namespace dtrun::comm
