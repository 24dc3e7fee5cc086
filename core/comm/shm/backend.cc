#include "core/comm/shm/backend.h"

#include <new>

#include "dtrun/plugin/op.hpp"

namespace dtrun::shm {
namespace {

class ShmBackend final : public sdk::Backend<ShmCommunicator> {
 public:
  ShmBackend(const sdk::Host& host, const sdk::Options&) : host_(host) {}

  sdk::Caps QueryCaps() const override {
    sdk::Caps caps = sdk::Caps::Everything();
    caps.any_source = true;
    return caps;
  }
  std::unique_ptr<ShmCommunicator> CreateCommunicator(const sdk::CommParams& params) override {
    return std::make_unique<ShmCommunicator>(host_, params);
  }

 private:
  const sdk::Host host_;
};

dtrun_plugin MakeTable() {
  sdk::PluginInfo info;
  info.name = "shm";
  info.version = DTRUN_VERSION;
  info.vendor = "dtrun";
  info.license = "Apache-2.0";
  info.summary = "collectives of one host through shared memory";
  return sdk::MakePlugin<ShmBackend>(info);
}

}  // namespace

const dtrun_plugin& EnginePlugin() {
  static const dtrun_plugin table = MakeTable();
  return table;
}

using sdk::Failure;

ShmCommunicator::ShmCommunicator(const sdk::Host& host, const sdk::CommParams& params)
    : group_(host, params),
      collectives_(group_),
      messages_(group_),
      calls_(host, *this, "shm-calls", params.size) {}

std::unique_ptr<sdk::Request> ShmCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream*) {
  group_.ThrowIfFailed();
  if (!sdk::IsCollective(op.kind)) return messages_.Start(op);
  try {
    return calls_.Enqueue(op);
  } catch (const std::bad_alloc&) {
    FailHalfDone();  // it may have begun
  }
}

bool ShmCommunicator::Begin(const dtrun_op& op) {
  last_started_.store(op.sequence, std::memory_order_relaxed);
  return collectives_.Begin(op);
}

void ShmCommunicator::Run(Running& running) {
  last_started_.store(running.op->sequence, std::memory_order_relaxed);
  try {
    collectives_.Run(running);
  } catch (const std::bad_alloc&) {
    FailHalfDone();
  }
  last_completed_.store(running.op->sequence, std::memory_order_relaxed);
}

// The other ranks cannot finish the call either.
void ShmCommunicator::FailHalfDone() {
  group_.Fail(Failure(DTRUN_OUT_OF_MEMORY, "out of memory in the middle of a call"));
}

void ShmCommunicator::Abandon(const Running& running) { group_.Abandon(running); }

void ShmCommunicator::Abort(const std::string& reason) { group_.Abort(reason); }

void ShmCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  sink.Line("collectives started up to " + std::to_string(last_started_) + ", completed up to " +
            std::to_string(last_completed_));
  if (const auto text = group_.FailureText()) sink.Line("failed: " + *text);
}

void* ShmCommunicator::MemAlloc(const dtrun_mem_params& params) { return AllocateRegion(params.bytes); }
void ShmCommunicator::MemFree(void* memory) { ReleaseRegion(memory); }

}  // namespace dtrun::shm
