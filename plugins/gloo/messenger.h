// The messages of one collective after another, for the algorithms of the SDK.
//
// Owned by a communicator, used by the thread that runs a collective.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "dtrun/algorithms.hpp"
#include "mesh.h"
#include "transfer.h"

namespace dtrun::gloo_plugin {

class MeshMessenger final : public algorithms::Messenger {
 public:
  explicit MeshMessenger(Mesh& mesh) : mesh_(mesh) {}

  // Later messages belong to `operation`, which is `op`.
  void Begin(Operation& operation, const dtrun_op& op);
  // The slot of the collective, which no other one under way has; its lowest four bits are free.
  std::uint64_t slot() const { return slot_; }

  int rank() const override { return mesh_.rank(); }
  int size() const override { return mesh_.size(); }
  Message Send(int peer, const void* data, std::size_t bytes) override;
  Message Recv(int peer, void* data, std::size_t bytes) override;
  void Wait(Message message) override;
  void Cancel() noexcept override { transfers_.clear(); }

 private:
  Message Keep(std::unique_ptr<Transfer> transfer);

  Mesh& mesh_;
  Operation* operation_ = nullptr;
  std::uint64_t slot_ = 0;
  std::unordered_map<Message, std::unique_ptr<Transfer>> transfers_;  // under way
};

// The slot of a message of `bytes` in the collective that has `slot`: messages of ranks that disagree on the
// size never match.
std::uint64_t SlotOf(std::uint64_t slot, std::size_t bytes);

// The slot of a DTRUN_SEND or DTRUN_RECV.
std::uint64_t MessageSlot(const dtrun_op& op);

}  // namespace dtrun::gloo_plugin
