#include "comm.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dtrun/plugin/names.hpp"
#include "dtrun/plugin/patience.hpp"
#include "handle.h"
#include "launch.h"
#include "nccl_api.h"

namespace dtrun::nccl_plugin {
namespace {

using sdk::Failure;

constexpr char kId[] = "id";  // NCCL's, behind one of the marks
constexpr char kIdMark = 'i';
constexpr char kErrorMark = 'e';

nccl::UniqueId FetchId(const sdk::Membership& members, const sdk::Deadline& deadline) {
  const std::string value = members.kv().Get(kId, deadline.Left());
  nccl::UniqueId id;
  if (value.size() != 1 + sizeof id.internal || value[0] != kIdMark) {
    throw Failure(DTRUN_REMOTE_FAILURE, "rank 0 could not open '" + members.name() + "': " + value.substr(1),
                  0);
  }
  std::memcpy(id.internal, value.data() + 1, sizeof id.internal);
  return id;
}

}  // namespace

NcclCommunicator::NcclCommunicator(const Environment& environment, const sdk::CommParams& params, int device,
                                   const sdk::Deadline& deadline)
    : environment_(environment),
      log_(environment.host, "nccl"),
      health_(environment.host),
      device_(device),
      members_(params) {
  const OnDevice on(environment_.cuda, device_);
  stream_ = std::make_unique<OwnStream>(environment_.cuda);
  scratch_ = DeviceBuffer(environment_.cuda, 2 * Launcher::kScratchWord);
  environment_.cuda.Check(
      environment_.cuda.memset_async(scratch_.data(), 0, 2 * Launcher::kScratchWord, stream_->get()),
      "clear memory");
  events_ = std::make_unique<EventPool>(environment_.cuda);
  handle_ = Connect(params, deadline);
  memory_ = std::make_unique<RegisteredMemory>(environment_.nccl, environment_.cuda, *handle_, device_);
}

std::unique_ptr<Handle> NcclCommunicator::Connect(const sdk::CommParams& params,
                                                  const sdk::Deadline& deadline) {
  nccl::UniqueId id{};
  if (params.rank == 0) {
    try {
      const nccl::Result result = environment_.nccl.get_unique_id(&id);
      if (result != nccl::kSuccess)
        throw NcclFailure(environment_.nccl, "open '" + params.name + "'", result);
      const auto address = ReadBootstrapAddress(id);
      if (params.host_count > 1 && address && address->loopback) {
        throw Failure(DTRUN_FAILED_PRECONDITION,
                      "nccl chose the loopback interface (" + address->Text() +
                          "), which other hosts cannot reach; set backend.nccl.interface");
      }
      members_.kv().Set(kId, kIdMark + std::string(id.internal, sizeof id.internal));
    } catch (const Failure& failure) {
      members_.kv().Set(kId, kErrorMark + std::string(failure.what()));
      throw;
    }
  } else {
    id = FetchId(members_, deadline);
  }
  if (const auto address = ReadBootstrapAddress(id)) bootstrap_ = address->Text();
  const Handle::Place place{id, params.rank, params.size, environment_.config.Get()};
  Clock::time_point next_look = Clock::now();
  try {
    return std::make_unique<Handle>(environment_.nccl, place, deadline, [&] {
      if (Clock::now() < next_look) return;
      next_look = Clock::now() + std::chrono::milliseconds(100);
      if (const auto failure = members_.FailureOfAnother()) throw *failure;
    });
  } catch (const Failure& failure) {
    Failure told(
        failure.code(),
        std::string(failure.what()) +
            (bootstrap_.empty() ? "" : " (rank 0 of '" + params.name + "' listens on " + bootstrap_ + ")"),
        failure.peer());
    members_.PublishFailure(told);
    throw told;
  }
}

NcclCommunicator::~NcclCommunicator() {
  try {
    members_.Leave(progress_.Encode());
  } catch (const Failure& failure) {
    log_.Debug("cannot tell the other ranks that this one leaves '" + members_.name() +
               "': " + failure.what());
  }
}

void NcclCommunicator::CopyInPlace(Operation& operation) const {
  const dtrun_op& op = *operation.op;
  if (!operation.needs_copy(members_.size())) return;
  const std::uint64_t bytes =
      sdk::EndOf(sdk::SendParts(op, members_.rank(), members_.size())) * operation.width;
  if (bytes == 0) return;
  operation.copy = DeviceBuffer(environment_.cuda, bytes);
  environment_.cuda.Check(environment_.cuda.memcpy_async(operation.copy.data(), op.send, bytes,
                                                         cuda::kCopyDeviceToDevice, operation.stream),
                          "copy the buffer of " + operation.text);
}

std::unique_ptr<NcclRequest> NcclCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream* stream) {
  auto operation =
      std::make_shared<Operation>(op, members_.size(), stream == nullptr ? stream_->get() : stream->native);
  if (operation->detached() && operation->needs_copy(members_.size())) {
    throw Failure(DTRUN_UNSUPPORTED, operation->text +
                                         ": in place, nccl needs a copy of the buffer, for which a graph "
                                         "has no memory; receive into another buffer");
  }
  failure_.ThrowIfSet();
  Count(*operation);
  std::unique_ptr<NcclRequest> request;
  if (!operation->detached()) request = std::make_unique<NcclRequest>(*this, operation);
  if (grouping_) {
    group_.push_back(std::move(operation));
  } else {
    Launch({std::move(operation)});
  }
  return request;
}

void NcclCommunicator::Count(Operation& operation) {
  if (operation.point_to_point()) {
    operation.message = ++progress_.messages[operation.op->peer];
  } else {
    progress_.collective = operation.op->sequence;
    last_enqueued_ = operation.op->sequence;
  }
}

void NcclCommunicator::GroupBegin() {
  failure_.ThrowIfSet();
  if (grouping_) throw Failure(DTRUN_FAILED_PRECONDITION, "a group is open already; end it first");
  grouping_ = true;
}

// NCCL's own groups belong to a thread and would take in calls of other communicators; so the
// operations are collected here and started together now.
void NcclCommunicator::GroupEnd() {
  if (!grouping_) throw Failure(DTRUN_FAILED_PRECONDITION, "no group is open; begin one first");
  grouping_ = false;
  const auto operations = std::exchange(group_, {});
  if (!operations.empty()) Launch(operations);
}

void NcclCommunicator::Launch(const std::vector<std::shared_ptr<Operation>>& operations) {
  failure_.ThrowIfSet();
  try {
    const OnDevice on(environment_.cuda, device_);
    const NcclApi& api = environment_.nccl;
    Reductions reductions(api, *handle_);
    std::vector<nccl::Reduction> chosen;
    for (const auto& operation : operations) {
      CopyInPlace(*operation);
      chosen.push_back(reductions.For(*operation));
    }
    const nccl::Result result = handle_->Use([&](nccl::Comm comm) {
      const Launcher launcher{api, comm, members_.rank(), members_.size(), scratch_.data()};
      nccl::Result started = api.group_start();
      if (started != nccl::kSuccess) return started;
      for (std::size_t i = 0; i < operations.size(); ++i) {
        started = launcher.Start(*operations[i], chosen[i]);
        if (started != nccl::kSuccess && started != nccl::kInProgress) break;
      }
      const nccl::Result ended = api.group_end();  // also after a failure: the group is the thread's
      return started == nccl::kSuccess || started == nccl::kInProgress ? ended : started;
    });
    if (result == nccl::kInProgress) {
      AwaitLaunch(*operations.front());
    } else if (result != nccl::kSuccess) {
      failure_.ThrowIfSet();  // by another thread meanwhile
      throw NcclFailure(api, "start " + operations.front()->text, result);
    }
    Record(operations);
  } catch (const Failure& failure) {
    Fail(failure);
    throw Failure(*failure_);
  }
}

// The first operations of a communicator connect the devices: NCCL launches them only then.
void NcclCommunicator::AwaitLaunch(const Operation& operation) {
  sdk::Patience patience;
  for (;;) {
    const nccl::Result state = handle_->State();
    failure_.ThrowIfSet();
    if (state == nccl::kSuccess) return;
    if (state != nccl::kInProgress) throw NcclFailure(environment_.nccl, "start " + operation.text, state);
    Watch(operation);
    patience.Wait(operation.deadline);
  }
}

void NcclCommunicator::Record(const std::vector<std::shared_ptr<Operation>>& operations) {
  for (const auto& operation : operations) {
    if (operation->detached()) continue;
    const cuda::Event event = events_->Take();
    const cuda::Error recorded = environment_.cuda.event_record(event, operation->stream);
    const std::lock_guard lock(mutex_);
    operation->event = event;
    environment_.cuda.Check(recorded, "record the end of " + operation->text);
    if (failure_) break;  // the phases of these operations do not matter any more
    operation->phase = Phase::kLaunched;
    if (operation->dropped) {
      events_->Return(std::exchange(operation->event, nullptr));
    } else {
      live_.insert(operation.get());
    }
  }
  failure_.ThrowIfSet();
}

Phase NcclCommunicator::Ask(Operation& operation) {
  if (operation.phase != Phase::kLaunched) return operation.phase;
  if (!environment_.cuda.Reached(operation.event, "finish " + operation.text)) return operation.phase;
  operation.phase = Phase::kDone;
  live_.erase(&operation);
  if (!operation.point_to_point()) {
    std::uint64_t before = last_completed_;
    while (before < operation.op->sequence &&
           !last_completed_.compare_exchange_weak(before, operation.op->sequence)) {
    }
  }
  return operation.phase;
}

bool NcclCommunicator::Poll(Operation& operation) {
  try {
    {
      const std::lock_guard lock(mutex_);
      const Phase phase = Ask(operation);
      if (phase == Phase::kDone) return true;
      if (phase == Phase::kFailed || failure_) throw Failure(*failure_);
    }
    Watch(operation);
    return false;
  } catch (const Failure& failure) {
    Fail(failure);
    const std::lock_guard lock(mutex_);
    if (operation.phase == Phase::kDone) return true;  // it arrived while its end was sought
    throw Failure(*failure_);
  }
}

void NcclCommunicator::OrderAfter(Operation& operation, const dtrun_stream& stream) {
  const std::lock_guard lock(mutex_);
  if (operation.phase == Phase::kFailed) throw Failure(*failure_);
  if (operation.phase == Phase::kGrouped) {
    throw Failure(DTRUN_FAILED_PRECONDITION,
                  operation.text + " has not been started; end the group before a stream waits for it");
  }
  const OnDevice on(environment_.cuda, device_);
  const cuda::Error ordered =
      environment_.cuda.Handled(environment_.cuda.stream_wait_event(stream.native, operation.event, 0));
  if (ordered == cuda::kCaptureIsolation) {
    throw Failure(DTRUN_UNSUPPORTED, "the stream is being captured into a graph, which cannot wait for " +
                                         operation.text +
                                         ", started outside of it; order the stream before "
                                         "the capture begins");
  }
  environment_.cuda.Check(ordered, "order a stream after " + operation.text);
  operation.ordered = true;
}

bool NcclCommunicator::Wait(Operation& operation, sdk::Nanoseconds timeout) {
  const sdk::Deadline limit(timeout);
  sdk::Patience patience;
  while (!Poll(operation)) {
    if (limit.passed()) return false;
    patience.Wait(limit);
  }
  return true;
}

void* NcclCommunicator::MemAlloc(const dtrun_mem_params& params) {
  failure_.ThrowIfSet();
  std::string warning;
  void* const memory = memory_->Alloc(params, &warning);
  if (!warning.empty()) log_.Warn("memory of '" + members_.name() + "' is moved more slowly: " + warning);
  return memory;
}

void NcclCommunicator::MemRegister(const dtrun_mem_params& params, void* memory) {
  failure_.ThrowIfSet();
  memory_->Register(params, memory);
}

void NcclCommunicator::Release(Operation& operation) {
  std::unique_lock lock(mutex_);
  if (operation.phase == Phase::kLaunched && !operation.ordered) {
    lock.unlock();
    try {
      Wait(operation, sdk::kNoLimit);
    } catch (const std::exception& error) {
      log_.Debug(operation.text + " of '" + members_.name() + "' was dropped and failed: " + error.what());
    }
    lock.lock();
  }
  operation.dropped = true;
  live_.erase(&operation);
  if (operation.event != nullptr) events_->Return(std::exchange(operation.event, nullptr));
}

}  // namespace dtrun::nccl_plugin
