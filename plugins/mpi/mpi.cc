// The entry point, the backend (which library, what it can do) and its communicators.
#include <memory>
#include <optional>
#include <string>

#include "collective_queue.h"
#include "dtrun/plugin/environment.hpp"
#include "messages.h"

namespace dtrun::mpi_plugin {
namespace {

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

// Checks what it is asked for, and hands it on. Owned by core; thread classes as in dtrun/abi/backend.h. Its
// parts are shared with threads that may outlive it in a call of MPI that never ends.
class MpiCommunicator final : public sdk::Communicator<sdk::Request> {
 public:
  MpiCommunicator(const sdk::Host& host, const sdk::CommParams& params, World& world,
                  const CommOptions& options);
  ~MpiCommunicator() override;

  std::unique_ptr<sdk::Request> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override;
  void Abort(const std::string& reason) override;
  void Snapshot(const sdk::SnapshotSink& sink) override;

 private:
  const std::shared_ptr<Team> team_;
  const std::shared_ptr<CollectiveQueue> collectives_;
  const std::shared_ptr<Messages> messages_;
  const bool caller_runs_;
};

MpiCommunicator::MpiCommunicator(const sdk::Host& host, const sdk::CommParams& params, World& world,
                                 const CommOptions& options)
    : team_(std::make_shared<Team>(host, params, world, options.coll_sm)),
      collectives_(std::make_shared<CollectiveQueue>(host, team_, options.limit, options.cuda)),
      messages_(std::make_shared<Messages>(host, team_, options.limit, options.cuda)),
      // Without an entry barrier a caller could not be taken out of MPI when its deadline passes.
      caller_runs_(options.blocking == Blocking::kCaller && team_->entry() != nullptr) {}

MpiCommunicator::~MpiCommunicator() {
  const bool collectives_ended = collectives_->Stop();
  const bool messages_ended = messages_->Stop();
  team_->Leave(collectives_ended && messages_ended);
}

std::unique_ptr<sdk::Request> MpiCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream*) {
  team_->failure().ThrowIfSet();
  const bool blocking = (op.flags & DTRUN_OP_BLOCKING) != 0;
  if (!sdk::IsCollective(op.kind)) {
    return std::make_unique<MessageRequest>(messages_, messages_->Add(op, blocking));
  }
  return std::make_unique<CollectiveRequest>(collectives_, collectives_->Add(op, blocking && caller_runs_));
}

void MpiCommunicator::Abort(const std::string& reason) {
  team_->Fail(sdk::Failure(DTRUN_ABORTED, reason), Fate::kAborted);
}

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
