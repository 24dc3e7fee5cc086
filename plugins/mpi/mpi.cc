// The entry point, the backend (which library, what it can do), its communicators and their options.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "collective.h"
#include "dtrun/plugin/call_queue.hpp"
#include "dtrun/plugin/cuda_scope.hpp"
#include "dtrun/plugin/environment.hpp"
#include "messages.h"

namespace dtrun::mpi_plugin {
namespace {

using sdk::Failure;

constexpr const char* kCollSmChoices[] = {"auto", "on", "off"};
constexpr const char* kBlockingChoices[] = {"caller", "thread"};
enum class Blocking { kCaller, kThread };
constexpr const char* kDeviceMemoryChoices[] = {"auto", "staged"};
enum class DeviceMemory { kAuto, kStaged };

constexpr dtrun_option kOptions[] = {
    sdk::Option("library", DTRUN_TYPE_STRING, nullptr, "path of libmpi, or a name for the dynamic linker",
                DTRUN_SCOPE_HOST)
        .Long("Unset: " MPI_SONAME
              ", which belongs to the headers that this plugin was built with. If the program has already "
              "loaded an MPI, the plugin uses that one."),
    sdk::Option("coll_sm", DTRUN_TYPE_ENUM, "auto", "Open MPI's shared-memory collectives")
        .Long(
            "Open MPI ships them with priority 0, which disables them.\n"
            "auto: for allreduce, reduce and broadcast of 32 MiB and more, when all ranks share a host and "
            "each has a processor. on: at every size, wherever Open MPI can use them. off: as installed.\n"
            "OMPI_MCA_coll_sm_priority in the environment takes precedence. The option has no effect if the "
            "program has called MPI_Init itself.")
        .Choices(kCollSmChoices)
        .Alias("OMPI_MCA_coll_sm_priority"),
    sdk::Option("blocking", DTRUN_TYPE_ENUM, "caller", "which thread makes a blocking call's MPI call",
                DTRUN_SCOPE_PROCESS)
        .Long("caller: the waiting thread, once all ranks have arrived, which saves a thread switch. If a "
              "rank dies in the middle of the MPI call, the thread stays in it.\n"
              "thread: always a thread of the communicator, so that every wait ends at its deadline whatever "
              "MPI does.\n"
              "Ranks on several hosts always use the communicator's thread.")
        .Choices(kBlockingChoices),
    sdk::Option("device_memory", DTRUN_TYPE_ENUM, "auto", "how the memory of GPUs goes to other ranks")
        .Long("auto: straight from and to the GPU's memory where Open MPI says that it takes it "
              "(MPIX_Query_cuda_support), for what MPI does by itself: messages, broadcast, allgather, "
              "alltoall, gather, scatter, and allreduce and reduce of types and reductions that MPI has. "
              "The rest goes through the host's memory, and coll_sm is then off. staged: all of it goes "
              "through the host's memory, over whatever carries that, shared memory too. All hosts need the "
              "same.")
        .Choices(kDeviceMemoryChoices),
    sdk::Option("chunk", DTRUN_TYPE_UINT, "1073741824", "largest count of one MPI call")
        .Long("MPI counts are of type int; longer operations are split. Lower it only to test that.")
        .Unit("elements")
        .Range("1", "1073741824")};

// How often a sleeper looks around: for ranks that died, and aborts.
constexpr sdk::Nanoseconds kLook = std::chrono::milliseconds(20);
// What a call that is in MPI gets to come out, once the communicator has failed.
constexpr sdk::Nanoseconds kGrace = std::chrono::seconds(1);
// How long the gate of an MPI for one thread at a time is held for ranks that may come.
constexpr sdk::Nanoseconds kHold = std::chrono::microseconds(500);

struct CommOptions {
  CollSm coll_sm = CollSm::kAuto;
  Blocking blocking = Blocking::kCaller;
  std::uint64_t limit = 1u << 30;  // the largest count given to one call of MPI
  bool cuda = false;               // operations may be in memory of CUDA
};

// Whether MPI alone does that operation. Some forms of the other kinds are packed, copied or scaled here,
// which a query does not tell.
bool MpiDoesAll(const dtrun_support_query& query) {
  switch (query.kind) {
    case DTRUN_SEND:
    case DTRUN_RECV:
    case DTRUN_BROADCAST:
    case DTRUN_ALLGATHER:
    case DTRUN_ALLTOALL:
    case DTRUN_GATHER:
    case DTRUN_SCATTER: return true;
    case DTRUN_ALLREDUCE:
    case DTRUN_REDUCE: return Combiners::IsNative(query.dtype, query.reduce);
    default: return false;
  }
}

// The collectives of a communicator, in order. Before MPI is entered all ranks enter the entry barrier; while
// they do, a call can end with an error. Owned by the communicator, unless its thread stays in MPI: then it
// stays too. Any thread.
class CollectiveCalls final : private sdk::Runner {
 public:
  CollectiveCalls(const sdk::Host& host, std::shared_ptr<Team> team, const CommOptions& options)
      : team_(std::move(team)),
        cuda_(options.cuda),
        // Without an entry barrier a caller could not be taken out of MPI when its deadline passes.
        caller_runs_(options.blocking == Blocking::kCaller && team_->entry() != nullptr),
        collectives_(*team_, options.limit),
        queue_(host, *this, "dtrun-mpi-calls", team_->size(), kLook) {}

  std::unique_ptr<sdk::Request> Enqueue(dtrun_op op) {
    last_added_ = op.sequence;
    if (!caller_runs_) op.flags &= ~static_cast<std::uint32_t>(DTRUN_OP_BLOCKING);
    if (team_->size() == 1) op.flags |= DTRUN_OP_BLOCKING;  // done at once
    return queue_.Enqueue(op);
  }
  // REQUIRES that no call is left. False: the thread is left behind in MPI, and this object with it.
  bool Stop() {
    const bool ended = queue_.Stop(kGrace);
    if (!ended) team_->world().SetStuck();
    return ended;
  }
  std::uint64_t last_added() const { return last_added_; }
  std::uint64_t last_done() const { return last_done_; }

 private:
  bool Begin(const dtrun_op&) override { return team_->size() == 1; }
  bool Ready() override { return team_->size() == 1; }
  void Run(sdk::Running& running) override;
  void Abandon(const sdk::Running& running) override { team_->Fail(TimeoutOf(*running.op, false)); }
  std::optional<Failure> GiveUp(sdk::Running& running, bool begun) override;

  void Carry(sdk::Running& running);
  void Enter(sdk::Running& running);
  void EnterHolding(std::unique_lock<std::timed_mutex>& gate, sdk::Running& running);
  bool MustEnter(sdk::Running& running, bool entered);
  Failure TimeoutOf(const dtrun_op& op, bool in_mpi);

  const std::shared_ptr<Team> team_;
  const bool cuda_;  // operations may be in memory of CUDA
  const bool caller_runs_;
  Collectives collectives_;
  std::atomic<bool> in_mpi_{false};  // the call that runs
  std::atomic<std::uint64_t> last_added_{0};
  std::atomic<std::uint64_t> last_done_{0};
  sdk::CallQueue queue_;  // its thread uses the rest
};

void CollectiveCalls::Run(sdk::Running& running) {
  const dtrun_op& op = *running.op;
  std::optional<Failure> failure;
  try {
    Carry(running);
  } catch (const Failure& error) {
    failure = error;
  } catch (const std::bad_alloc&) {
    failure = Failure(DTRUN_OUT_OF_MEMORY, sdk::OperationText(op) + ": out of memory");
  } catch (const std::exception& error) {
    failure = Failure(DTRUN_INTERNAL, error.what());
  }
  in_mpi_ = false;
  if (failure) {
    team_->Fail(*failure);
    throw Failure(*team_->failure());
  }
  last_done_ = op.sequence;
}

void CollectiveCalls::Carry(sdk::Running& running) {
  std::unique_lock<std::timed_mutex> gate;
  if (team_->size() > 1) {
    team_->failure().ThrowIfSet();
    if (std::timed_mutex* const one_at_a_time = team_->world().gate()) {
      gate = std::unique_lock(*one_at_a_time, std::defer_lock);
      EnterHolding(gate, running);
    } else if (team_->entry() != nullptr) {
      Enter(running);
    }
    in_mpi_ = true;
  }
  const dtrun_op& op = *running.op;
  sdk::CudaScope scope;
  if (cuda_) scope.Enter(sdk::CudaScope::ContextOf(op.recv != nullptr ? op.recv : op.send));
  collectives_.Run(op);
}

void CollectiveCalls::Enter(sdk::Running& running) {
  // Some 20 µs, what a sleep and its end cost. Fewer when the ranks cannot all run at once.
  static const long processors = sysconf(_SC_NPROCESSORS_ONLN);  // not only those that this rank is bound to
  EntryBarrier& entry = *team_->entry();
  const std::uint64_t call = running.op->sequence;
  if (entry.Enter(call, sdk::SignatureOf(*running.op, team_->size()))) return;
  for (int looks = team_->size() <= processors ? 300 : 20; looks > 0; --looks) {
    if (entry.Ready(call)) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
  }
  while (!entry.Ready(call) && !MustEnter(running, true))
    entry.Sleep(call, running.deadline.Start().Soon(kLook));
}

// Throws when the call cannot go on. True when it is too late for that.
bool CollectiveCalls::MustEnter(sdk::Running& running, bool entered) {
  team_->CheckPeers(Team::kAll, running.op->sequence);
  if (!team_->failure() && running.deadline.Passed()) team_->Fail(TimeoutOf(*running.op, false));
  if (!team_->failure()) return false;
  if (entered && !team_->entry()->GoBack(running.op->sequence)) return true;
  throw Failure(*team_->failure());
}

// Of two communicators each rank could hold its gate for another one, for ever. So it is held
// for a moment only, and a rank that does not hold it has not come.
void CollectiveCalls::EnterHolding(std::unique_lock<std::timed_mutex>& gate, sdk::Running& running) {
  thread_local std::minstd_rand random{std::random_device{}()};
  EntryBarrier* const entry = team_->entry();
  const std::uint64_t call = running.op->sequence;
  for (;;) {
    if (gate.try_lock_until(running.deadline.Start().Soon(kLook))) {
      if (entry == nullptr || entry->Enter(call, sdk::SignatureOf(*running.op, team_->size()))) return;
      const auto end = sdk::Deadline::Clock::now() + kHold;
      while (!entry->Ready(call) && sdk::Deadline::Clock::now() < end) entry->Sleep(call, end);
      if (!entry->GoBack(call)) return;
      gate.unlock();
    }
    MustEnter(running, false);
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution<int>(50, 500)(random)));
  }
}

Failure CollectiveCalls::TimeoutOf(const dtrun_op& op, bool in_mpi) {
  int first = -1;
  const std::string missing = in_mpi ? "" : team_->MissingRanks(op.sequence, &first);
  return Failure(DTRUN_TIMEOUT,
                 sdk::OperationText(op) + " on '" + team_->name() + "' did not end within " +
                     sdk::DurationText(sdk::Nanoseconds(op.timeout_ns)) +
                     (missing.empty() ? "; the call of MPI that it waits for cannot be cancelled, so '" +
                                            team_->name() + "' stays failed"
                                      : ": still missing: " + missing),
                 first);
}

std::optional<Failure> CollectiveCalls::GiveUp(sdk::Running& running, bool begun) {
  const bool in_mpi = begun && in_mpi_;
  // With an entry barrier, those that a call in MPI needs are known to be in it.
  team_->CheckPeers(team_->entry() == nullptr ? Team::kAll : Team::kNoPeer, running.op->sequence);
  if (!team_->failure() && running.deadline.Passed()) team_->Fail(TimeoutOf(*running.op, in_mpi));
  if (!team_->failure()) return std::nullopt;
  const bool stuck = in_mpi && sdk::Deadline::Clock::now() >= team_->failed_at() + kGrace;
  if (begun && !stuck) return std::nullopt;  // it ends by itself, or has a moment left for that
  if (stuck) team_->world().SetStuck();
  return *team_->failure();
}

// Checks what it is asked for, and hands it on. Owned by core; thread classes as in dtrun/abi/backend.h. Its
// parts stay when their threads are left behind in a call of MPI that never ends.
class MpiCommunicator final : public sdk::Communicator<sdk::Request> {
 public:
  MpiCommunicator(const sdk::Host& host, const sdk::CommParams& params, World& world,
                  const CommOptions& options)
      : team_(std::make_shared<Team>(host, params, world, options.coll_sm)),
        collectives_(std::make_unique<CollectiveCalls>(host, team_, options)),
        messages_(std::make_shared<Messages>(host, team_, options.limit, options.cuda)) {}
  ~MpiCommunicator() override {
    const bool collectives_ended = collectives_->Stop();
    const bool messages_ended = messages_->Stop();
    team_->Leave(collectives_ended && messages_ended, collectives_->last_done());
    if (!collectives_ended) static_cast<void>(collectives_.release());
  }

  std::unique_ptr<sdk::Request> Enqueue(const dtrun_op& op, const dtrun_stream*) override {
    team_->failure().ThrowIfSet();
    if (sdk::IsCollective(op.kind)) return collectives_->Enqueue(op);
    return std::make_unique<MessageRequest>(messages_,
                                            messages_->Add(op, (op.flags & DTRUN_OP_BLOCKING) != 0));
  }
  void Abort(const std::string& reason) override {
    team_->Fail(Failure(DTRUN_ABORTED, reason), Fate::kAborted);
  }
  void Snapshot(const sdk::SnapshotSink& sink) override;

 private:
  const std::shared_ptr<Team> team_;
  std::unique_ptr<CollectiveCalls> collectives_;
  const std::shared_ptr<Messages> messages_;
};

void MpiCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  sink.Line("rank " + std::to_string(team_->rank()) + " of " + std::to_string(team_->size()) + " in '" +
            team_->name() + "': collective " + std::to_string(collectives_->last_done()) + " of " +
            std::to_string(collectives_->last_added()) + " done");
  if (team_->failure()) sink.Line(std::string("failed: ") + team_->failure()->what());
  int first = -1;
  const std::string missing = team_->MissingRanks(collectives_->last_added(), &first);
  if (!missing.empty()) sink.Line("still missing: " + missing);
}

class MpiBackend final : public sdk::Backend<MpiCommunicator> {
 public:
  MpiBackend(const sdk::Host& host, const sdk::Options& options)
      : host_(host), world_(World::Open(options.FindString("library"))) {
    options_.coll_sm = static_cast<CollSm>(options.EnumIndex("coll_sm"));
    options_.blocking = static_cast<Blocking>(options.EnumIndex("blocking"));
    options_.limit = static_cast<std::uint64_t>(options.Int("chunk"));
    device_text_ = ChooseDeviceMemory(static_cast<DeviceMemory>(options.EnumIndex("device_memory")));
  }
  ~MpiBackend() override { world_.thread().End(kGrace); }

  sdk::Caps QueryCaps() const override {
    sdk::Caps caps = sdk::Caps::Everything();
    caps.any_source = true;
    caps.lazy_connect = true;
    caps.no_stream = options_.cuda;
    if (options_.cuda) caps.device_kinds |= sdk::Bits({DTRUN_DEVICE_CUDA});
    return caps;
  }

  bool Supports(const dtrun_support_query& query) const override {
    return query.device_kind == DTRUN_DEVICE_HOST || MpiDoesAll(query);
  }

  std::unique_ptr<MpiCommunicator> CreateCommunicator(const sdk::CommParams& params) override {
    return std::make_unique<MpiCommunicator>(host_, params, world_, options_);
  }

  void LaunchInfo(const dtrun_launch_query& query, const sdk::LaunchSink& sink) override {
    sink.Fact("library", ShortVersion(world_.library().version));
    sink.Fact("library_path", world_.library().path);
    sink.Fact("memory", "host");
    sink.Fact("device", device_text_);
    const std::vector<Variable> variables =
        CollSmVariables(options_.coll_sm, query.host_count == 1 ? query.local_ranks : 0);
    sink.Fact("coll_sm", CollSmText(variables));
    sink.Fact("algorithm", "Open MPI's, which it chooses for each call; coll/sm " + CollSmText(variables));
    for (const Variable& variable : variables) sink.Env(variable.name, variable.value);
  }

 private:
  // What becomes of memory of CUDA, in words.
  std::string ChooseDeviceMemory(DeviceMemory wanted) {
    if (wanted == DeviceMemory::kStaged) return "staged, as backend.options.device_memory says";
    if (!world_.api().TakesCuda())
      return "staged, because this Open MPI was built without CUDA, or does not say yet that it takes its "
             "memory";
    // Its collectives copy with processors, and would stand before those of Open MPI that know CUDA.
    if (options_.coll_sm == CollSm::kOn || sdk::EnvironmentVariable("OMPI_MCA_coll_sm_priority"))
      return "staged, because coll_sm is on";
    options_.coll_sm = CollSm::kOff;
    options_.cuda = true;
    return "direct (Open MPI with cuda); what MPI does not do by itself staged";
  }

  const sdk::Host host_;
  World& world_;
  CommOptions options_;
  std::string device_text_;
};

}  // namespace
}  // namespace dtrun::mpi_plugin

DTRUN_SDK_PLUGIN(dtrun::mpi_plugin::MpiBackend, .name = DTRUN_PLUGIN_NAME, .version = DTRUN_VERSION,
                 .vendor = "dtrun", .license = "Apache-2.0",
                 .summary = "collectives of an installed Open MPI", .options = dtrun::mpi_plugin::kOptions,
                 .option_count = std::size(dtrun::mpi_plugin::kOptions))
