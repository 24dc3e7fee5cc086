#include "messenger.h"

#include <utility>

#include "dtrun/plugin/signature.hpp"

namespace dtrun::gloo_plugin {
namespace {

std::uint64_t Folded(std::uint64_t hash, int bits) {
  return (hash ^ hash >> 32) & ((std::uint64_t{1} << bits) - 1);
}

std::uint64_t DigestOf(std::uint64_t number, int bits) {
  sdk::Fnv1a digest;
  digest.Add(number);
  return Folded(digest.value(), bits);
}

}  // namespace

void MeshMessenger::Begin(Operation& operation, const dtrun_op& op) {
  operation_ = &operation;
  const std::uint64_t digest = Folded(sdk::SignatureOf(op, size()).Digest(), 24);
  slot_ = MakeSlot(SlotUse::kCollective, (op.sequence & 0xffffffffu) << 28 | digest << 4);
}

std::uint64_t SlotOf(std::uint64_t slot, std::size_t bytes) { return slot ^ DigestOf(bytes, 24) << 4; }

algorithms::Messenger::Message MeshMessenger::Keep(std::unique_ptr<Transfer> transfer) {
  const Message message = transfer.get();
  transfers_.emplace(message, std::move(transfer));
  return message;
}

algorithms::Messenger::Message MeshMessenger::Send(int peer, const void* data, std::size_t bytes) {
  auto transfer = std::make_unique<Transfer>(mesh_, peer, data, bytes);
  transfer->Send(SlotOf(slot_, bytes), 0, bytes);
  return Keep(std::move(transfer));
}

algorithms::Messenger::Message MeshMessenger::Recv(int peer, void* data, std::size_t bytes) {
  auto transfer = std::make_unique<Transfer>(mesh_, peer, data, bytes);
  transfer->Recv(SlotOf(slot_, bytes), 0, bytes);
  return Keep(std::move(transfer));
}

void MeshMessenger::Wait(Message message) {
  auto* const transfer = static_cast<Transfer*>(message);
  transfer->FinishSends(*operation_);
  transfer->FinishRecvs(*operation_);
  transfers_.erase(message);
}

// 32 bits of tag and 28 of digest. Messages of one slot match in the order they were sent; a sender does not
// know whether the receiver names it, so the slot cannot count them.
std::uint64_t MessageSlot(const dtrun_op& op) {
  const std::uint64_t what = op.count << 8 | static_cast<std::uint64_t>(op.dtype);
  return MakeSlot(SlotUse::kPointToPoint, std::uint64_t{op.tag} << 28 | DigestOf(what, 28));
}

}  // namespace dtrun::gloo_plugin
