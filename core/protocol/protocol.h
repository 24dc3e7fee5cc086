// Checks messages against earlier ones: authenticated peers are still validated.
//
// Each end of a channel has one. It notes sent messages, and checks received ones against their phase and the
// sizes, hosts, ranks and pairs that earlier messages named. A message that fails the check is an error of
// the peer and ends the channel. One owner; loop thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/protocol/messages.h"

namespace dtrun::protocol {

// The state of the conversation that later messages depend on.
struct Conversation {
  struct RankProcess {
    int rank = 0;  // the first rank in it
    int count = 1;
    bool own_outputs = false;  // each of its ranks has its own output
    bool ended = false;
    bool Has(int one) const { return one >= rank && one - rank < count; }
  };

  Phase phase = Phase::kJoining;
  bool told_to_end = false;              // in this generation
  std::array<int, kRequests> open = {};  // by Request: how many have no answer yet
  // The search for the network.
  int host = -1;                             // number of the agent's host
  std::optional<std::size_t> candidates;     // of the agent's host; nullopt: not surveyed
  std::map<int, std::size_t> candidates_of;  // of the peers in its latest check
  // The latest prepared generation.
  int world_size = 0;
  bool wants_master_port = false;
  std::vector<int> task_ranks;
  std::vector<RankProcess> processes;  // of the agent's host, by rank
  int hosts = 0;                       // number of hosts that exchange MPI data; 0: none
  int here = 0;                        // index of the agent's host among them
  std::set<std::string> exchanges;     // exchanges for which the agent awaits an answer to its part
  std::uint32_t last_client = 0;       // latest client of the store

  bool Lives(int rank) const;  // whether the rank is on the agent's host
  // Message name of the request that the agent has not answered yet; null: none.
  const char* unanswered() const;
};

class Protocol {
 public:
  // Notes a message that this end is about to send.
  void Note(const ToAgent& message);
  void Note(const ToRoot& message);

  // Checks a received message. True: carry it out. False: ignore it, it concerns ranks that are already gone,
  // because messages crossed. The error names message, value and phase.
  Result<bool> Check(const ToAgent& message);
  Result<bool> Check(const ToRoot& message);

  const Conversation& said() const { return said_; }

 private:
  Conversation said_;
};

}  // namespace dtrun::protocol
