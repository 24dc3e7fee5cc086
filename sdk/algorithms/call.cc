#include "call.h"

#include <algorithm>
#include <utility>

namespace dtrun::algorithms {

Part EvenPart(std::size_t count, int parts, int index) {
  const auto n = static_cast<std::size_t>(parts);
  const auto i = static_cast<std::size_t>(index);
  const std::size_t each = count / n;
  const std::size_t more = count % n;
  return {i * each + std::min(i, more), each + (i < more ? 1 : 0)};
}

std::vector<Part> EvenParts(std::size_t count, int parts) {
  std::vector<Part> all;
  for (int index = 0; index < parts; ++index) all.push_back(EvenPart(count, parts, index));
  return all;
}

std::vector<Part> GivenParts(const std::uint64_t* counts, const std::uint64_t* offsets, int parts) {
  std::vector<Part> all;
  std::size_t next = 0;
  for (int index = 0; index < parts; ++index) {
    all.push_back({offsets != nullptr ? offsets[index] : next, counts[index]});
    next += counts[index];
  }
  return all;
}

std::vector<Part> EqualParts(std::size_t count, int parts) {
  std::vector<Part> all;
  for (int index = 0; index < parts; ++index) all.push_back({static_cast<std::size_t>(index) * count, count});
  return all;
}

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
