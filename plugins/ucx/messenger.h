// The messages of collectives, for the algorithms of the SDK.
//
// Owned by an Engine, used by the thread that drives it.
#pragma once

#include <deque>

#include "dtrun/algorithms.hpp"
#include "engine.h"

namespace dtrun::ucx_plugin {

// UCX matches messages by a 64-bit tag: 2 bits tell uses apart, 30 the sender, 32 the number of
// the collective or the user's tag.
inline constexpr int kSenderBits = 30;
enum class TagUse : std::uint64_t { kCollective = 1, kMessage = 2 };
constexpr ucp_tag_t MakeTag(TagUse use, int sender, std::uint32_t low) {
  return static_cast<std::uint64_t>(use) << 62 | static_cast<std::uint64_t>(sender) << 32 | low;
}
constexpr ucp_tag_t kWholeTag = ~ucp_tag_t{0};
constexpr ucp_tag_t kAnySender = ~(((ucp_tag_t{1} << kSenderBits) - 1) << 32);
constexpr int SenderOf(ucp_tag_t tag) { return static_cast<int>(tag >> 32 & ((1u << kSenderBits) - 1)); }

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

}  // namespace dtrun::ucx_plugin
