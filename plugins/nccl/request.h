// An operation under way, as core holds it. Owned by core; thread classes as in
// dtrun/abi/backend.h.
#pragma once

#include <memory>

#include "dtrun/plugin.hpp"

namespace dtrun::nccl_plugin {

class NcclCommunicator;
struct Operation;

class NcclRequest final : public sdk::Request {
 public:
  NcclRequest(NcclCommunicator& comm, std::shared_ptr<Operation> operation);
  // Waits, unless a stream was ordered after the operation: then the stream keeps the buffers'
  // users in order, and the host goes on.
  ~NcclRequest() override;

  bool Test() override;
  bool Wait(sdk::Nanoseconds timeout) override;
  void WaitStream(const dtrun_stream& stream) override;

 private:
  NcclCommunicator& comm_;
  const std::shared_ptr<Operation> operation_;
};

}  // namespace dtrun::nccl_plugin
