#include "messenger.h"

#include <vector>

#include "dtrun/algorithms.hpp"
#include "dtrun/kernels.hpp"
#include "dtrun/plugin/op.hpp"

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

bool MovesOnDevices(std::int32_t kind) {
  switch (kind) {
    case DTRUN_SEND:
    case DTRUN_RECV:
    case DTRUN_BROADCAST:
    case DTRUN_ALLGATHER:
    case DTRUN_ALLGATHERV:
    case DTRUN_GATHER:
    case DTRUN_GATHERV:
    case DTRUN_SCATTER:
    case DTRUN_SCATTERV: return true;
    default: return false;
  }
}

// The SDK's broadcast sends from its buffer and receives into it, and does nothing else.
void RunOnDevices(WorkerMessenger& messenger, const dtrun_op& op) {
  if (op.kind == DTRUN_BROADCAST) return algorithms::RunCollective(messenger, op);
  const int rank = messenger.rank();
  const int size = messenger.size();
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const sdk::Parts gives = sdk::InBytes(sdk::SendParts(op, rank, size), width);
  const sdk::Parts takes = sdk::InBytes(sdk::RecvParts(op, rank, size), width);
  std::vector<algorithms::Messenger::Message> messages;
  try {
    // Every rank begins with another one.
    for (int step = 0; step < 2 * size; ++step) {
      const int peer = (rank + step % size) % size;
      const auto index = static_cast<std::size_t>(peer);
      const bool receives = step < size;
      const sdk::Part& part = receives ? takes[index] : gives[index];
      if (part.size == 0) continue;
      void* const to = sdk::At(op.recv, takes[index].begin, 1);
      const void* const from = sdk::At(op.send, gives[index].begin, 1);
      if (peer == rank && to == from) continue;  // in place
      messages.push_back(receives ? messenger.Recv(peer, to, part.size)
                                  : messenger.Send(peer, from, part.size));
    }
    for (const algorithms::Messenger::Message message : messages) {
      if (message != nullptr) messenger.Wait(message);
    }
  } catch (...) {
    messenger.Cancel();
    throw;
  }
}

}  // namespace dtrun::ucx_plugin
