// What root and agent may say to each other, and when: that a peer knows the key does not make it right.
//
// Each end of a channel has one. What it sends is noted; what it receives is checked first, against what
// was said before and against the sizes, hosts, ranks and pairs that the message names. A message that
// fails is an error of the peer, and the end of the channel. The table of messages and phases is in
// protocol.cc, the ranges of their fields are in protocol_ranges.cc. One owner; loop thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/protocol/messages.h"

namespace dtrun::protocol {

// What has been said so far, as far as later messages depend on it.
struct Conversation {
  // Of the agent's host. Root and agent see a change one after the other: the agent first.
  enum class Phase : std::uint8_t { kJoining, kIdle, kPreparing, kPrepared, kStarting, kRunning };
  struct RankProcess {
    int rank = 0;  // the first one that lives in it
    int count = 1;
    bool own_outputs = false;  // each of its ranks prints for itself
    bool ended = false;
  };

  Phase phase = Phase::kJoining;
  bool told_to_end = false;  // this generation
  // PreflightRequests without an answer yet.
  int surveys = 0, connectivity_checks = 0, measurements = 0, preflights = 0;
  // The search of the network.
  int host = -1;                             // number of the agent's host
  std::optional<std::size_t> candidates;     // of the agent's host; none: not surveyed
  std::map<int, std::size_t> candidates_of;  // of the peers that it tries last
  // The generation that was prepared last.
  int world_size = 0;
  bool wants_master_port = false;
  std::vector<int> task_ranks;
  std::vector<RankProcess> processes;  // of the agent's host, by rank
  int hosts = 0;                       // that exchange what MPI libraries say; 0: none do
  int here = 0;                        // which of them the agent's host is
  std::set<std::string> exchanges;     // that the agent has offered a part of, without an answer yet
  std::uint32_t last_client = 0;       // of the store

  bool Lives(int rank) const;  // on the agent's host
  // The request that the agent has not answered yet, by the name of its message; null: none.
  const char* unanswered() const;
};

class Protocol {
 public:
  // What this end is about to send.
  void Note(const ToAgent& message);
  void Note(const ToRoot& message);

  // What has come: true when it is to be carried out, false when it is about ranks that are gone meanwhile,
  // as crossing messages are. The error names message, value and phase.
  Result<bool> Check(const ToAgent& message);
  Result<bool> Check(const ToRoot& message);

  const Conversation& said() const { return said_; }

 private:
  Conversation said_;
};

// The first value of a message that is out of its range, in words; empty: none is.
std::string OutOfRange(const Conversation& said, const ToAgent& message);
std::string OutOfRange(const Conversation& said, const ToRoot& message);

}  // namespace dtrun::protocol
