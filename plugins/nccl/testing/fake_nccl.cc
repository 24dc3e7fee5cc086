// An NCCL over host memory, for ranks that are threads of one process: the library's own names
// and types over fake_world.h, and the failures that fake_control.h asks for.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "fake_control.h"
#include "fake_stream.h"
#include "fake_world.h"

namespace {

using namespace dtrun::nccl_fake;  // NOLINT: this file is the outside of that namespace

NcclControl& Control() {
  static NcclControl control;
  return control;
}

// Streams of a group beside the first, which stand still while its calls run.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t arrived = 0;
  bool done = false;
};

struct Batch {
  std::vector<Call> calls;
};

struct Comm {
  std::shared_ptr<World> world;
  std::shared_ptr<Rank> rank = std::make_shared<Rank>();
  std::mutex mutex;
  std::map<nccl::Reduction, double> scales;
  nccl::Reduction next_reduction = 5;
  std::vector<Batch> delayed;  // launched, as far as NCCL's thread has come
  int polls = 0;
  nccl::Result failed = nccl::kSuccess;
  bool finalizing = false;
};

Comm& Of(nccl::Comm comm) { return *reinterpret_cast<Comm*>(comm); }

std::shared_ptr<World> FindWorld(const nccl::UniqueId& id, int size) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<World>> worlds;
  const std::lock_guard lock(mutex);
  std::erase_if(worlds, [](const auto& one) { return one.second.expired(); });
  std::weak_ptr<World>& entry = worlds[std::string(id.internal, sizeof id.internal)];
  std::shared_ptr<World> world = entry.lock();
  if (world == nullptr) entry = world = std::make_shared<World>(size);
  return world;
}

// Calls of the calling thread between ncclGroupStart and ncclGroupEnd.
thread_local int group_depth = 0;
thread_local std::vector<std::pair<Comm*, Batch>> group;

void Post(void* stream, const std::function<void()>& task) { dtrun_fake_run(stream, &task); }

// On one stream: a graph may run it many times, each time after what ran before.
void StartHere(Comm& comm, Batch batch) {
  void* const stream = batch.calls.front().stream;
  const FakeStream::Maker make = [world = comm.world, rank = comm.rank,
                                  calls = std::move(batch.calls)]() -> FakeStream::Task {
    return [=, number = world->Take(*rank)] { world->Run(*rank, number, calls); };
  };
  dtrun_fake_make(stream, &make);
}

void Start(Comm& comm, Batch batch) {
  std::set<void*> streams;
  for (const Call& call : batch.calls) streams.insert(call.stream);
  if (streams.size() == 1) return StartHere(comm, std::move(batch));
  const std::uint64_t number = comm.world->Take(*comm.rank);
  void* const first = batch.calls.front().stream;
  streams.erase(first);
  const auto gate = std::make_shared<Gate>();
  for (void* const other : streams) {
    Post(other, [gate] {
      std::unique_lock lock(gate->mutex);
      ++gate->arrived;
      gate->changed.notify_all();
      gate->changed.wait(lock, [&] { return gate->done; });
    });
  }
  Post(first,
       [=, others = streams.size(), world = comm.world, rank = comm.rank, calls = std::move(batch.calls)] {
         std::unique_lock lock(gate->mutex);
         gate->changed.wait(lock, [&] { return gate->arrived == others; });
         lock.unlock();
         world->Run(*rank, number, calls);
         lock.lock();
         gate->done = true;
         gate->changed.notify_all();
       });
}

nccl::Result Launch(Comm& comm, Batch batch) {
  const std::lock_guard lock(comm.mutex);
  if (Control().launch_result != 0) return Control().launch_result;
  if (Control().launch_polls == 0) {
    Start(comm, std::move(batch));
    return nccl::kSuccess;
  }
  comm.polls = Control().launch_polls;
  comm.delayed.push_back(std::move(batch));
  return nccl::kInProgress;
}

nccl::Result Add(nccl::Comm handle, Call call) {
  Comm& comm = Of(handle);
  {
    const std::lock_guard lock(comm.mutex);
    if (!comm.delayed.empty()) return nccl::kInvalidUsage;  // the last launch has not ended
    if (const auto scale = comm.scales.find(call.reduction); scale != comm.scales.end()) {
      call.scaled = true;
      call.scale = scale->second;
      call.reduction = nccl::kSum;
    }
  }
  if (group_depth == 0) return Launch(comm, Batch{{call}});
  for (auto& [owner, batch] : group) {
    if (owner != &comm) continue;
    batch.calls.push_back(call);
    return nccl::kSuccess;
  }
  group.emplace_back(&comm, Batch{{call}});
  return nccl::kSuccess;
}

Call MakeCall(Kind kind, const void* send, void* recv, std::size_t count, nccl::DataType type, void* stream) {
  return {kind, send, recv, count, type, nccl::kSum, false, 1, 0, stream};
}

double Decode(const void* scalar, nccl::DataType type) {
  if (type == nccl::kFloat64) {
    double value = 0;
    std::memcpy(&value, scalar, sizeof value);
    return value;
  }
  if (type == nccl::kFloat32) {
    float value = 0;
    std::memcpy(&value, scalar, sizeof value);
    return static_cast<double>(value);
  }
  std::uint16_t word = 0;
  std::memcpy(&word, scalar, sizeof word);
  if (type == nccl::kBfloat16) {
    const std::uint32_t bits = std::uint32_t{word} << 16;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return static_cast<double>(value);
  }
  const int exponent = (word >> 10) & 31;
  const double magnitude =
      exponent == 0 ? std::ldexp(word & 1023, -24) : std::ldexp((word & 1023) + 1024, exponent - 25);
  return (word & 0x8000) != 0 ? -magnitude : magnitude;
}

}  // namespace

extern "C" {

NcclControl* dtrun_fake_nccl() { return &Control(); }

int ncclGetVersion(int* version) {
  *version = Control().version;
  return nccl::kSuccess;
}

const char* ncclGetErrorString(int result) {
  switch (result) {
    case nccl::kSuccess: return "no error";
    case nccl::kUnhandledCudaError: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case nccl::kSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case nccl::kInternalError: return "internal error - please report this issue to the NCCL developers";
    case nccl::kInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case nccl::kInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case nccl::kRemoteError: return "remote process exited or there was a network error";
    case nccl::kInProgress: return "NCCL operation in progress";
    default: return "unknown result code";
  }
}

const char* ncclGetLastError(nccl::Comm) {
  static thread_local std::string text;
  const std::lock_guard lock(Control().mutex);
  text = Control().last_error;
  return text.c_str();
}

// Laid out as NCCL does: magic, then the address of rank 0.
int ncclGetUniqueId(nccl::UniqueId* id) {
  static std::atomic<std::uint64_t> next{1};
  if (Control().id_result != 0) return Control().id_result;
  *id = {};
  const std::uint64_t magic = next++;
  std::memcpy(id->internal, &magic, sizeof magic);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(4711);
  address.sin_addr.s_addr = htonl(Control().loopback ? INADDR_LOOPBACK : 0xcb007107u);  // 203.0.113.7
  std::memcpy(id->internal + sizeof magic, &address, sizeof address);
  return nccl::kSuccess;
}

int ncclCommInitRankConfig(nccl::Comm* out, int size, nccl::UniqueId id, int rank, nccl::Config* config) {
  nccl::Config given;
  std::memcpy(&given, config, std::min(config->size, sizeof given));
  if (given.magic != 0xcafebeef || given.size < nccl::Config::kConfigBytes || given.blocking != 0) {
    Control().Say("the configuration was not initialised, or would block");
    return nccl::kInvalidArgument;
  }
  {
    const std::lock_guard lock(Control().mutex);
    Control().last_config = given;
    Control().last_net_name = given.net_name == nullptr ? "" : given.net_name;
  }
  const char* const no_p2p = std::getenv("NCCL_P2P_DISABLE");
  auto* const comm = new Comm;
  comm->world = FindWorld(id, size);
  comm->rank->rank = rank;
  comm->failed = Control().init_result;
  if (!Control().peer_access && (no_p2p == nullptr || std::strcmp(no_p2p, "1") != 0)) {
    Control().Say("Cuda failure 217 'peer access is not supported between these two devices'");
    comm->failed = nccl::kUnhandledCudaError;
  }
  comm->world->Join();
  ++Control().comms;
  *out = reinterpret_cast<nccl::Comm>(comm);
  return nccl::kInProgress;
}

int ncclCommGetAsyncError(nccl::Comm handle, nccl::Result* state) {
  Comm& comm = Of(handle);
  const std::lock_guard lock(comm.mutex);
  *state = nccl::kSuccess;
  if (comm.failed != nccl::kSuccess) {
    *state = comm.failed;
  } else if (!comm.world->complete()) {
    *state = nccl::kInProgress;
  } else if (!comm.delayed.empty()) {
    *state = nccl::kInProgress;
    if (--comm.polls <= 0) {
      for (Batch& batch : comm.delayed) Start(comm, std::move(batch));
      comm.delayed.clear();
    }
  } else if (!comm.world->Idle(*comm.rank)) {
    *state = Control().async_error != 0 ? Control().async_error.load()
             : comm.finalizing          ? nccl::kInProgress
                                        : nccl::kSuccess;
  }
  return nccl::kSuccess;
}

int ncclCommFinalize(nccl::Comm handle) {
  Comm& comm = Of(handle);
  const std::lock_guard lock(comm.mutex);
  comm.finalizing = true;
  return nccl::kInProgress;
}

int ncclCommDestroy(nccl::Comm handle) {
  delete &Of(handle);
  --Control().comms;
  return nccl::kSuccess;
}

int ncclCommAbort(nccl::Comm handle) {
  Comm& comm = Of(handle);
  comm.world->Abort(*comm.rank);
  delete &comm;
  --Control().comms;
  return nccl::kSuccess;
}

int ncclRedOpCreatePreMulSum(nccl::Reduction* out, void* scalar, nccl::DataType type, int residence,
                             nccl::Comm handle) {
  Comm& comm = Of(handle);
  if (residence != nccl::kScalarHostImmediate) return nccl::kInvalidArgument;
  const std::lock_guard lock(comm.mutex);
  *out = comm.next_reduction++;
  comm.scales[*out] = Decode(scalar, type);
  ++Control().reductions;
  return nccl::kSuccess;
}

int ncclRedOpDestroy(nccl::Reduction reduction, nccl::Comm handle) {
  Comm& comm = Of(handle);
  const std::lock_guard lock(comm.mutex);
  if (comm.scales.erase(reduction) == 0) return nccl::kInvalidArgument;
  --Control().reductions;
  return nccl::kSuccess;
}

int ncclAllReduce(const void* send, void* recv, std::size_t count, nccl::DataType type,
                  nccl::Reduction reduction, nccl::Comm comm, void* stream) {
  Call call = MakeCall(Kind::kAllReduce, send, recv, count, type, stream);
  call.reduction = reduction;
  return Add(comm, call);
}

int ncclReduce(const void* send, void* recv, std::size_t count, nccl::DataType type,
               nccl::Reduction reduction, int root, nccl::Comm comm, void* stream) {
  Call call = MakeCall(Kind::kReduce, send, recv, count, type, stream);
  call.reduction = reduction;
  call.partner = root;
  return Add(comm, call);
}

int ncclBroadcast(const void* send, void* recv, std::size_t count, nccl::DataType type, int root,
                  nccl::Comm comm, void* stream) {
  Call call = MakeCall(Kind::kBroadcast, send, recv, count, type, stream);
  call.partner = root;
  return Add(comm, call);
}

int ncclReduceScatter(const void* send, void* recv, std::size_t count, nccl::DataType type,
                      nccl::Reduction reduction, nccl::Comm comm, void* stream) {
  Call call = MakeCall(Kind::kReduceScatter, send, recv, count, type, stream);
  call.reduction = reduction;
  return Add(comm, call);
}

int ncclAllGather(const void* send, void* recv, std::size_t count, nccl::DataType type, nccl::Comm comm,
                  void* stream) {
  return Add(comm, MakeCall(Kind::kAllGather, send, recv, count, type, stream));
}

int ncclAlltoAll(const void* send, void* recv, std::size_t count, nccl::DataType type, nccl::Comm comm,
                 void* stream) {
  ++Control().native_all_to_alls;
  return Add(comm, MakeCall(Kind::kAllToAll, send, recv, count, type, stream));
}

int ncclSend(const void* send, std::size_t count, nccl::DataType type, int peer, nccl::Comm comm,
             void* stream) {
  Call call = MakeCall(Kind::kSend, send, nullptr, count, type, stream);
  call.partner = peer;
  return Add(comm, call);
}

int ncclRecv(void* recv, std::size_t count, nccl::DataType type, int peer, nccl::Comm comm, void* stream) {
  Call call = MakeCall(Kind::kRecv, nullptr, recv, count, type, stream);
  call.partner = peer;
  return Add(comm, call);
}

int ncclGroupStart() {
  ++group_depth;
  return nccl::kSuccess;
}

int ncclGroupEnd() {
  if (group_depth == 0) return nccl::kInvalidUsage;
  if (--group_depth > 0) return nccl::kSuccess;
  nccl::Result result = nccl::kSuccess;
  for (auto& [comm, batch] : std::exchange(group, {})) {
    const nccl::Result launched = Launch(*comm, std::move(batch));
    if (launched != nccl::kSuccess) result = launched;
  }
  return result;
}

}  // extern "C"
