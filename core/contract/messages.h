// The messages between two ranks, in the flight recorder: whose memory each of them was in.
//
// A message from the host's memory does not meet a receive on a device, because the two take different ways;
// so both sides note what they call, and whoever reads both finds the first message that differs. Pairs match
// by peer and tag, in order. Of a rank, as many combinations of peer, tag and direction are noted as there
// are rows; the rest, receives from any rank and messages of a graph are not compared. A row has one writer,
// as its ring.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/contract/recorder_memory.h"

namespace dtrun::contract {

// What a row holds.
struct MessageLog {
  std::uint64_t key = 0;
  std::uint64_t last = 0;   // how many there were, over a bit for each of the last: 1 is a device's memory
  std::uint64_t first = 0;  // how many of them, from the first, were in memory of one kind, over its bit
  friend bool operator==(const MessageLog&, const MessageLog&) = default;
};

struct Message {
  bool sends = false;
  std::int32_t peer = -1;  // -1: from any rank
  std::uint32_t tag = 0;
  bool on_device = false;
  bool counted = true;  // a graph may have it any number of times
};

// Notes that a message begins. What it gives TakeBack undoes, for one that was refused; null: not noted.
std::optional<MessageLog> Note(Ring& ring, const Message& message);
void TakeBack(Ring& ring, const MessageLog& before);
void ClearMessages(Ring& ring);

// All that make sense just now.
std::vector<MessageLog> ReadMessages(const Ring& ring);
// Of a rank elsewhere.
void WriteMessages(Ring& ring, const std::vector<MessageLog>& logs);
// Another one when there were more messages.
std::uint64_t MarkOf(const Ring& ring);

struct MessageDifference {
  int from = -1;  // ranks of the communicator
  int to = -1;
  std::string text;
};

// Whether the rank has called anything on a device; what it calls it is then known.
bool UsesDevices(const Ring& ring);
// The first message from the rank of `from`, as far as is remembered, that it and its peer call in different
// memory. `name`: of the communicator. `ring_of`: of one of its ranks; null: not to be compared.
std::optional<MessageDifference> DifferingMessage(const Ring& from, const std::string& name,
                                                  const std::function<const Ring*(int)>& ring_of);

}  // namespace dtrun::contract
