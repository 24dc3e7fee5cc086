// A send or a receive under way: Gloo has it from the start.
//
// Made by the communicator, owned by core. All methods: any thread; one thread at a time
// waits inside Gloo, the others wait for that one.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>

#include "dtrun/plugin.hpp"
#include "mesh.h"
#include "timer.h"
#include "transfer.h"

namespace dtrun::gloo_plugin {

class PointToPointRequest final : public sdk::Request {
 public:
  // Starts it. `op` is a DTRUN_SEND or DTRUN_RECV.
  PointToPointRequest(Mesh& mesh, const dtrun_op& op);
  ~PointToPointRequest() override;

  bool Test() override { return Wait(sdk::Nanoseconds(0)); }
  bool Wait(sdk::Nanoseconds timeout) override;

 private:
  bool WaitForTransfer();
  void Expire();
  bool LookForCompletion();

  Mesh& mesh_;
  const bool sending_;
  std::int32_t* const source_;  // the caller's; null when it does not ask
  Operation operation_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool waiting_ = false;  // a thread is inside Gloo
  bool done_ = false;
  std::optional<sdk::Failure> failure_;

  Transfer transfer_;
  std::optional<TimerEntry> timeout_;
};

}  // namespace dtrun::gloo_plugin
