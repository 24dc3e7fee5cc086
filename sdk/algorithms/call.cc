#include "call.h"

#include <utility>

namespace dtrun::algorithms {

Call::Call(Messenger& messenger) : messenger_(messenger), rank_(messenger.rank()), size_(messenger.size()) {}

Call::~Call() {
  if (!done_) messenger_.Cancel();
  for (ScratchPool::Block& block : scratch_) messenger_.scratch().Give(std::move(block));
}

void Call::Exchange(int to, const void* out, std::size_t out_bytes, int from, void* in,
                    std::size_t in_bytes) {
  const Message taken = Recv(from, in, in_bytes);
  const Message given = Send(to, out, out_bytes);
  Wait(taken);
  Wait(given);
}

std::byte* Call::Scratch(std::size_t bytes) {
  return scratch_.emplace_back(messenger_.scratch().Take(bytes)).memory.get();
}

void Messages::Finish() {
  for (const Call::Message message : messages_) call_.Wait(message);
  messages_.clear();
}

}  // namespace dtrun::algorithms
