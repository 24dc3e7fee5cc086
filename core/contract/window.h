// What one host tells the others of its rings, so that ranks of different hosts are compared too.
//
// While calls go on, only checkpoints travel, those of one rank for all of a host, which its agent
// compares by itself. Once ranks have called nothing for a while they wait or are done, and their
// last calls travel, once. Every agent enters what it is told into the pages that its own recorder memory has
// for those ranks: there the checker finds differences, and ranks read where the others are. Why it
// is built so: docs/decisions/008-flight-recorder.md. Owned by the agent; its loop thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/contract/heading.h"
#include "core/contract/messages.h"

namespace dtrun::contract {

// Where ranks stand that make no more calls: the numbers of their last ones.
struct Idle {
  std::uint64_t started = 0;
  std::uint64_t ended = 0;
  friend bool operator==(const Idle&, const Idle&) = default;
};

// Of one communicator, for ranks that have all called the same.
struct Window {
  struct Member {
    std::int32_t world_rank = 0;
    std::int32_t rank = 0;  // in the communicator
  };
  struct Seen {
    std::uint64_t number = 0;
    std::uint64_t chain = 0;
    sdk::Signature call;
  };
  std::uint64_t communicator = 0;  // digest of its name
  std::string name;
  std::string device;  // what the members' devices are called
  std::int32_t size = 0;
  std::vector<Member> members;
  bool freed = false;                                                // by them; then nothing follows
  std::optional<Idle> idle;                                          // none while they call on
  std::vector<Seen> calls;                                           // the last ones, oldest first
  std::vector<std::pair<std::uint64_t, std::uint64_t>> checkpoints;  // number and chain
  std::vector<MessageLog> messages;                                  // of an idle one that uses devices
};

// Writes the windows of this host.
class Reporter {
 public:
  // `ranks` of the world live on this host.
  Reporter(const RecorderMemory& recorder_memory, std::vector<int> ranks);

  // What is new since the last time; called ten times a second. Nothing of communicators that
  // have all their ranks here, and of rings that make no sense.
  std::vector<Window> Report();
  // Next time, tell also the last calls on `communicator`, although calls go on.
  void Tell(std::uint64_t communicator) { asked_ = communicator; }

 private:
  // What was told of one ring.
  struct Told {
    std::uint64_t communicator = 0;
    Window::Member member;
    Idle last;  // as seen at the last look
    std::uint64_t messages = 0;
    int looks = 0;      // since then
    bool idle = false;  // told
    bool any = false;   // told
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

// Whether ranks of a world of `world_size` could have called this: what ranks have written over, or
// another host makes up, may say anything.
bool MakesSense(const Window& window, int world_size);

// Enters what another host tells. Leaves out what makes no sense in this recorder memory, and ranks of this
// host: `here` write their pages themselves.
void Enter(const RecorderMemory& recorder_memory, const std::vector<int>& here, const Window& window);

}  // namespace dtrun::contract
