// A communicator of the ucx backend, and its requests.
//
// Collectives are carried out one after another, in the order in which they were enqueued;
// sends and receives are given to UCX at once. Owned by core; thread classes as in
// dtrun/abi/backend.h.
#pragma once

#include <memory>
#include <string>

#include "engine.h"

namespace dtrun::ucx_plugin {

class UcxRequest final : public sdk::Request {
 public:
  UcxRequest(Engine& engine, std::shared_ptr<Operation> operation)
      : engine_(engine), operation_(std::move(operation)) {}
  ~UcxRequest() override { engine_.WaitForEnd(*operation_); }

  bool Test() override { return engine_.Wait(*operation_, sdk::Nanoseconds(0)); }
  bool Wait(sdk::Nanoseconds timeout) override { return engine_.Wait(*operation_, timeout); }

 private:
  Engine& engine_;
  const std::shared_ptr<Operation> operation_;
};

class UcxCommunicator final : public sdk::Communicator<UcxRequest> {
 public:
  UcxCommunicator(const sdk::Host& host, const sdk::CommParams& params, std::shared_ptr<Context> context);

  std::unique_ptr<UcxRequest> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override;
  void Abort(const std::string& reason) override;
  void Snapshot(const sdk::SnapshotSink& sink) override;

 private:
  Engine engine_;
};

}  // namespace dtrun::ucx_plugin
