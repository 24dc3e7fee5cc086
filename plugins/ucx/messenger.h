// The messages of collectives, for the algorithms of the SDK.
//
// Owned by an Engine, used by the thread that drives it.
#pragma once

#include <cstdint>
#include <deque>

#include "dtrun/algorithms.hpp"
#include "engine.h"

namespace dtrun::ucx_plugin {

class WorkerMessenger final : public algorithms::Messenger {
 public:
  explicit WorkerMessenger(Engine& engine) : engine_(engine) {}

  int rank() const override { return engine_.members().rank(); }
  int size() const override { return engine_.members().size(); }
  Message Send(int peer, const void* data, std::size_t bytes) override;
  Message Recv(int peer, void* data, std::size_t bytes) override;
  void Wait(Message message) override;
  void Cancel() noexcept override { engine_.Shut(); }

 private:
  Transfer& Next(int peer, std::size_t bytes);
  ucp_tag_t Tag(int sender) const {
    return MakeTag(TagUse::kCollective, sender, static_cast<std::uint32_t>(engine_.current().op->sequence));
  }

  Engine& engine_;
  std::deque<Transfer> transfers_;
  std::vector<Transfer*> free_;
};

// Collectives in the memory of devices, which no processor may touch: parts go straight from buffer to
// buffer, a rank's own part as a message to itself. True if `kind` can be done this way: it combines
// nothing and needs no memory beside its buffers.
bool MovesOnDevices(std::int32_t kind);

// REQUIRES: `op` is a collective and MovesOnDevices.
void RunOnDevices(WorkerMessenger& messenger, const dtrun_op& op);

}  // namespace dtrun::ucx_plugin
