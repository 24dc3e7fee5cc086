// A host's reports on its rings to the other hosts, so that ranks of different hosts are compared too.
//
// While calls go on, only checkpoints travel: one rank's for all of a host, because its agent compares the
// others itself. Ranks that have called nothing for a while wait or are done; their last calls travel then,
// once. Every agent enters the reports into the pages that its own recorder memory has for those ranks. There
// the checker finds differences, and ranks read where the others are. Rationale:
// docs/decisions/008-flight-recorder.md. Owned by the agent; runs on its loop thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/contract/messages.h"
#include "core/contract/ring.h"
#include "core/wire/limits.h"

namespace dtrun::contract {

// The position of ranks that make no more calls: the numbers of their last ones.
struct Idle {
  std::uint64_t started = 0;
  std::uint64_t ended = 0;
  void Fields(auto& io) {
    io("started", started);
    io("ended", ended);
  }
  friend bool operator==(const Idle&, const Idle&) = default;
};

// A report on one communicator, for ranks that have all called the same.
struct Window {
  struct Member {
    std::int32_t world_rank = 0;
    std::int32_t rank = 0;  // in the communicator
    void Fields(auto& io) {
      io("world_rank", world_rank);
      io("rank", rank);
    }
  };
  struct Seen {
    std::uint64_t number = 0;
    std::uint64_t chain = 0;
    sdk::Signature call;
    void Fields(auto& io) {
      io("number", number);
      io("chain", chain);
      io("kind", call.kind);
      io("dtype", call.dtype);
      io("reduce", call.reduce);
      io("device_kind", call.device_kind);
      io("root", call.root);
      io("count", call.count);
      io("shape", call.shape);
    }
  };
  std::uint64_t communicator = 0;  // digest of its name
  std::string name;
  std::string device;  // the name of the members' devices
  std::int32_t size = 0;
  std::vector<Member> members;
  bool freed = false;                                                // by the members; then nothing follows
  std::optional<Idle> idle;                                          // none while they call on
  std::vector<Seen> calls;                                           // the last ones, oldest first
  std::vector<std::pair<std::uint64_t, std::uint64_t>> checkpoints;  // number and chain
  std::vector<MessageLog> messages;                                  // of an idle one
  void Fields(auto& io) {
    constexpr wire::Most kMostCalls{1 << 10};
    io("communicator", communicator);
    io("name", name, wire::kMostName);
    io("device", device, wire::kMostName);
    io("size", size);
    io("members", members, wire::kMostEntries);
    io("freed", freed);
    io("idle", idle);
    io("calls", calls, kMostCalls);
    io("checkpoints", checkpoints, kMostCalls);
    io("messages", messages, kMostCalls);
  }
};

// Writes the windows of this host.
class Reporter {
 public:
  // `ranks`: world ranks on this host.
  Reporter(const RecorderMemory& recorder_memory, std::vector<int> ranks);

  // What is new since the last time; called ten times a second. Omits communicators that have all their ranks
  // here, and invalid rings.
  std::vector<Window> Report();
  // The next report includes the last calls on `communicator`, although calls go on.
  void Tell(std::uint64_t communicator) { asked_ = communicator; }

 private:
  // What was reported of one ring.
  struct Told {
    std::uint64_t communicator = 0;
    Window::Member member;
    Idle last;  // as seen at the last look
    std::uint64_t messages = 0;
    int looks = 0;      // since then
    bool idle = false;  // reported
    bool any = false;   // reported
    std::uint64_t checkpoint = 0;
  };

  static void TellFreed(const Told& told, std::vector<Window>& out);
  static Window& Add(const Ring& ring, const Heading& heading, Told& told, std::vector<Window>& out);
  void TellProgress(const Ring& ring, const Heading& heading, Told& told, std::vector<Window>& out);
  static void TellIdle(const Ring& ring, const Heading& heading, Told& told, std::vector<Window>& out);

  const RecorderMemory recorder_memory_;
  const std::vector<int> ranks_;
  std::vector<Told> told_;  // by ring: kRings for each of ranks_
  std::uint64_t asked_ = 0;
};

// Whether ranks of a world of `world_size` could have called this: corrupt rings, or another host, may claim
// anything.
bool MakesSense(const Window& window, int world_size);

// Enters a report of another host. Omits what is invalid in this recorder memory, and ranks of this host:
// `here` write their pages themselves.
void Enter(const RecorderMemory& recorder_memory, const std::vector<int>& here, const Window& window);

}  // namespace dtrun::contract
