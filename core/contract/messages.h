// The messages between two ranks, in the flight recorder: which kind of memory, type and count each side
// used, and which are under way.
//
// A message from host memory does not meet a receive on a device, because the two use different routes, and
// most transports move bytes without their type. So both sides record their calls, and a reader of both finds
// the first message that differs. Messages pair by peer and tag, in order. Each rank has one row per
// combination of peer, tag and direction, while rows last. The rest, receives from any rank and messages of a
// graph are not compared. A row has one writer, as its ring.
#pragma once

#include <array>
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
  std::array<std::uint64_t, kMessageContents> contents = {};  // as in MessageRow
  void Fields(auto& io) {
    io("key", key);
    io("last", last);
    io("first", first);
    io("content0", contents[0]);
    io("content1", contents[1]);
    io("content2", contents[2]);
    io("content3", contents[3]);
  }
  friend bool operator==(const MessageLog&, const MessageLog&) = default;
};

struct Message {
  bool sends = false;
  std::int32_t peer = -1;  // -1: from any rank
  std::uint32_t tag = 0;
  bool on_device = false;
  std::uint8_t dtype = 0;
  std::uint64_t count = 0;  // elements
  bool counted = true;      // false: a graph may have it any number of times
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
  bool receives = false;
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

// The tags of messages from the rank of `from` that the rank of `to` has not begun to receive; empty if that
// is not known.
std::vector<std::uint32_t> UnreceivedTags(const Ring& from, const Ring& to);
// "rank 0 has sent tags 5, 6": those. Empty: none.
std::string UnreceivedText(const Ring& from, const Ring& to);

// Whether the rank has begun any message.
bool HasMessages(const Ring& ring);
// The first remembered message from the rank of `from` that it and its peer call differently. `name`:
// the communicator's. `ring_of`: the ring of one of its ranks; null: not compared.
std::optional<MessageDifference> DifferingMessage(const Ring& from, const std::string& name,
                                                  const std::function<const Ring*(int)>& ring_of);

}  // namespace dtrun::contract
