#include "comm.h"

#include <limits>
#include <optional>
#include <utility>

#include "job.h"
#include "kernels.h"
#include "p2p.h"
#include "signals.h"

namespace dtrun::gloo_plugin {
namespace {

using sdk::Failure;

const char* KindText(std::int32_t kind) {
  switch (kind) {
    case DTRUN_ALLREDUCE: return "allreduce";
    case DTRUN_BROADCAST: return "broadcast";
    case DTRUN_ALLGATHER: return "allgather";
    case DTRUN_REDUCE_SCATTER: return "reduce-scatter";
    case DTRUN_BARRIER: return "barrier";
    case DTRUN_SEND: return "send";
    case DTRUN_RECV: return "recv";
    default: return "unknown";
  }
}

bool Reduces(std::int32_t kind) { return kind == DTRUN_ALLREDUCE || kind == DTRUN_REDUCE_SCATTER; }
bool PointToPoint(std::int32_t kind) { return kind == DTRUN_SEND || kind == DTRUN_RECV; }

[[noreturn]] void Refuse(const dtrun_op& op, const std::string& why) {
  throw Failure(DTRUN_INVALID_ARGUMENT, std::string(KindText(op.kind)) + ": " + why);
}

// Mixes what ranks must agree on into a few bits; FNV-1a.
std::uint64_t Digest(std::initializer_list<std::uint64_t> values) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::uint64_t value : values) {
    for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ ((value >> shift) & 0xffu)) * 0x100000001b3u;
  }
  return hash ^ (hash >> 32);
}

std::uint64_t CollectiveSlot(const dtrun_op& op) {
  const std::uint64_t digest =
      Digest({static_cast<std::uint32_t>(op.kind), static_cast<std::uint32_t>(op.dtype),
              static_cast<std::uint32_t>(op.reduce), static_cast<std::uint32_t>(op.root), op.count});
  return MakeSlot(SlotUse::kCollective, (op.sequence & 0xffffffffu) << 28 | (digest & 0xffffffu) << 4);
}

// 32 bits of tag, 12 of number and 16 of digest.
std::uint64_t MessageSlot(const dtrun_op& op, std::uint64_t number) {
  const std::uint64_t digest = Digest({static_cast<std::uint32_t>(op.dtype), op.count});
  return MakeSlot(SlotUse::kPointToPoint,
                  std::uint64_t{op.tag} << 28 | (number & 0xfffu) << 16 | (digest & 0xffffu));
}

}  // namespace

GlooCommunicator::GlooCommunicator(const sdk::Host& host, const sdk::CommParams& params,
                                   const Interface& interface)
    : default_timeout_(params.timeout), mesh_(host, params, interface) {
  if (mesh_.size() == 1) return;
  const BlockSignals block;
  worker_ = std::thread([this, host] { RunJobs(host); });
}

GlooCommunicator::~GlooCommunicator() {
  if (!worker_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void GlooCommunicator::Check(const dtrun_op& op, const dtrun_stream* stream) const {
  if (op.kind <= 0 || op.kind >= DTRUN_OP_COUNT) {
    throw Failure(DTRUN_UNSUPPORTED,
                  "operation " + std::to_string(op.kind) + " is unknown to this gloo plugin");
  }
  if (stream != nullptr && stream->device_kind != 0) {
    throw Failure(DTRUN_UNSUPPORTED,
                  "gloo moves host memory only; copy to the host or choose another backend");
  }
  const auto in_world = [&](int rank) { return rank >= 0 && rank < mesh_.size(); };
  const std::string world = "; '" + mesh_.name() + "' has " + std::to_string(mesh_.size()) + " ranks";
  if (op.kind == DTRUN_BROADCAST && !in_world(op.root))
    Refuse(op, "no rank " + std::to_string(op.root) + world);
  if (PointToPoint(op.kind)) {
    if (!in_world(op.peer)) Refuse(op, "no rank " + std::to_string(op.peer) + world);
    if (op.peer == mesh_.rank())
      Refuse(op, "rank " + std::to_string(op.peer) + " is this rank; copy the buffer instead");
  }
  if (op.kind == DTRUN_BARRIER) return;
  const std::size_t width = ElementBytes(op.dtype);
  if (width == 0) Refuse(op, "unknown element type " + std::to_string(op.dtype));
  if (Reduces(op.kind) && KernelFor(op.dtype, op.reduce) == nullptr) {
    Refuse(op, op.reduce == DTRUN_AVG ? "avg needs a floating-point type; use sum and divide"
                                      : "unknown reduction " + std::to_string(op.reduce));
  }
  const auto parts = static_cast<std::uint64_t>(mesh_.size());
  if (op.count > std::numeric_limits<std::ptrdiff_t>::max() / width / parts) {
    Refuse(op, std::to_string(op.count) + " elements do not fit the address space");
  }
  if (op.count == 0) return;
  const bool needs_send = op.kind != DTRUN_BROADCAST && op.kind != DTRUN_RECV;
  const bool needs_recv = op.kind != DTRUN_SEND;
  if (needs_send && op.send == nullptr) Refuse(op, "the send buffer is null");
  if (needs_recv && op.recv == nullptr) Refuse(op, "the recv buffer is null");
}

std::unique_ptr<sdk::Request> GlooCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream* stream) {
  Check(op, stream);
  mesh_.ThrowIfFailed();
  const sdk::Nanoseconds timeout = op.timeout_ns == 0 ? default_timeout_ : sdk::Nanoseconds(op.timeout_ns);
  return PointToPoint(op.kind) ? EnqueuePointToPoint(op, timeout) : EnqueueCollective(op, timeout);
}

std::unique_ptr<sdk::Request> GlooCommunicator::EnqueuePointToPoint(const dtrun_op& op,
                                                                    sdk::Nanoseconds timeout) {
  std::uint64_t& number = next_message_[{op.kind, op.peer, op.tag}];
  auto request = std::make_unique<PointToPointRequest>(mesh_, op, op.count * ElementBytes(op.dtype),
                                                       MessageSlot(op, number), timeout);
  ++number;
  return request;
}

std::unique_ptr<sdk::Request> GlooCommunicator::EnqueueCollective(const dtrun_op& op,
                                                                  sdk::Nanoseconds timeout) {
  auto job = std::make_shared<CollectiveJob>();
  job->op = op;
  job->operation.text = std::string(KindText(op.kind)) + " " + std::to_string(op.sequence);
  job->operation.timeout = timeout;
  last_enqueued_ = op.sequence;
  if (mesh_.size() == 1) {
    RunJob(*job);
  } else {
    job->Guard(mesh_, mesh_.timer(), Deadline(timeout));
    const std::lock_guard lock(mutex_);
    jobs_.push_back(job);
    changed_.notify_all();
  }
  return std::make_unique<CollectiveRequest>(std::move(job));
}

void GlooCommunicator::RunJobs(const sdk::Host& host) {
  const sdk::ThreadScope scope(host, "gloo-worker");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::shared_ptr<CollectiveJob> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    RunJob(*job);
    lock.lock();
  }
}

void GlooCommunicator::RunJob(CollectiveJob& job) {
  const dtrun_op& op = job.op;
  last_started_ = op.sequence;
  std::optional<Failure> failure;
  try {
    mesh_.ThrowIfFailed();
    const CollectiveCall call{op.send, op.recv, op.count, ElementBytes(op.dtype), CollectiveSlot(op)};
    const ReduceKernel kernel = Reduces(op.kind) ? KernelFor(op.dtype, op.reduce) : nullptr;
    if (op.kind == DTRUN_BARRIER) {
      DisseminationBarrier(mesh_, job.operation, call.slot);
    } else if (op.count > 0) {
      switch (op.kind) {
        case DTRUN_ALLREDUCE: Allreduce(mesh_, job.operation, call, kernel); break;
        case DTRUN_REDUCE_SCATTER: ReduceScatter(mesh_, job.operation, call, kernel); break;
        case DTRUN_ALLGATHER: Allgather(mesh_, job.operation, call); break;
        default: Broadcast(mesh_, job.operation, call, op.root); break;
      }
    }
    last_completed_ = op.sequence;
  } catch (const Failure& thrown) {
    failure = thrown;
  } catch (const std::bad_alloc&) {
    // Half done, so the other ranks cannot finish either.
    mesh_.Fail({DTRUN_OUT_OF_MEMORY, job.operation.text + " needs more memory than there is", -1, -1});
    failure = Failure(DTRUN_OUT_OF_MEMORY, job.operation.text + " needs more memory than there is");
  }
  job.Finish(std::move(failure));
}

void GlooCommunicator::Abort(const std::string& reason) {
  mesh_.Fail({DTRUN_ABORTED, "'" + mesh_.name() + "' was aborted: " + reason, -1, -1});
}

void GlooCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  sink.Line("collectives enqueued up to " + std::to_string(last_enqueued_) + ", started up to " +
            std::to_string(last_started_) + ", completed up to " + std::to_string(last_completed_));
  if (const auto cause = mesh_.cause()) sink.Line("failed: " + cause->text);
}

}  // namespace dtrun::gloo_plugin
