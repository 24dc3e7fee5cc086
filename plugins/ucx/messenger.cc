#include "messenger.h"

namespace dtrun::ucx_plugin {

Transfer& WorkerMessenger::Next(int peer, std::size_t bytes) {
  Transfer* transfer = nullptr;
  if (free_.empty()) {
    transfer = &transfers_.emplace_back();
  } else {
    transfer = free_.back();
    free_.pop_back();
    *transfer = Transfer{};
  }
  transfer->peer = peer;
  transfer->bytes = bytes;
  return *transfer;
}

algorithms::Messenger::Message WorkerMessenger::Send(int peer, const void* data, std::size_t bytes) {
  Transfer& transfer = Next(peer, bytes);
  transfer.memory = engine_.current().send_memory;
  engine_.worker().Send(transfer, Tag(rank()), data);
  if (!transfer.done || transfer.status != UCS_OK) return &transfer;
  free_.push_back(&transfer);  // small ones have left at once
  return nullptr;
}

algorithms::Messenger::Message WorkerMessenger::Recv(int peer, void* data, std::size_t bytes) {
  Transfer& transfer = Next(peer, bytes);
  transfer.memory = engine_.current().recv_memory;
  engine_.worker().Recv(transfer, Tag(peer), kWholeTag, data);
  return &transfer;
}

void WorkerMessenger::Wait(Message message) {
  auto* const transfer = static_cast<Transfer*>(message);
  engine_.Await(*transfer);
  free_.push_back(transfer);
}

}  // namespace dtrun::ucx_plugin
