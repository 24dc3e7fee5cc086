// The messages between two ranks, in the flight recorder: which kind of memory each side used, and which are
// under way.
//
// A message from host memory does not meet a receive on a device, because the two use different routes. So
// both sides record their calls, and a reader of both finds the first message that differs. Messages pair by
// peer and tag, in order. Each rank has one row per combination of peer, tag and direction, while rows last.
// The rest, receives from any rank and messages of a graph are not compared. A row has one writer, as its
// ring.
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
  std::uint64_t last = 0;   // their count, above one bit for each of the last: 1 is a device's memory
  std::uint64_t first = 0;  // how many, from the first, were in memory of one kind, above its bit
  void Fields(auto& io) {
    io("key", key);
    io("last", last);
    io("first", first);
  }
  friend bool operator==(const MessageLog&, const MessageLog&) = default;
};

struct Message {
  bool sends = false;
  std::int32_t peer = -1;  // -1: from any rank
  std::uint32_t tag = 0;
  bool on_device = false;
  bool counted = true;  // false: a graph may have it any number of times
};

// Records that a message begins. TakeBack takes the result if it is refused; null: not recorded.
std::optional<MessageLog> Note(Ring& ring, const Message& message);
// Records that one that began has ended, or was released. Any thread.
void NoteEnd(Ring& ring, const Message& message);
void TakeBack(Ring& ring, const MessageLog& before);
void ClearMessages(Ring& ring);

// Changes when a rank of this host begins or ends a message.
std::uint64_t MessagesOf(const Ring& ring);
struct MessageUnderWay {
  std::string text;          // "recv from rank 0 with tag 5"; "a send or recv" if there is no row for it
  std::uint64_t number = 0;  // of the last one of its row
  // Of all its receives, or sends if it has none; empty: from any rank, or not known.
  std::vector<int> peers;
  bool known = true;
};
// One of a rank of this host, a receive if there is one.
std::optional<MessageUnderWay> FindUnderWay(const Ring& ring);

// All that are valid at the moment.
std::vector<MessageLog> ReadMessages(const Ring& ring);
// Writes those of a rank on another host.
void WriteMessages(Ring& ring, const std::vector<MessageLog>& logs);
// Changes when there are more messages.
std::uint64_t MarkOf(const Ring& ring);

struct MessageDifference {
  int from = -1;  // ranks of the communicator
  int to = -1;
  std::string text;
};

// Whether the rank has called anything on a device; the device's name is then known.
bool UsesDevices(const Ring& ring);
// The first remembered message from the rank of `from` that it and its peer call in different memory. `name`:
// the communicator's. `ring_of`: the ring of one of its ranks; null: not compared.
std::optional<MessageDifference> DifferingMessage(const Ring& from, const std::string& name,
                                                  const std::function<const Ring*(int)>& ring_of);

}  // namespace dtrun::contract
