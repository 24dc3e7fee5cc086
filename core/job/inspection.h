// Inspects the ranks on all hosts and combines the answers.
//
// Owned by the controller; loop thread. Hosts that do not answer in time are left out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "core/base/timer.h"
#include "core/protocol/host.h"

namespace dtrun::job {

class Inspection {
 public:
  using Done = std::function<void(const protocol::Inspected& all)>;

  using Hosts = std::map<std::size_t, protocol::Host*>;  // by their numbers

  explicit Inspection(asio::io_context& loop) : timer_(loop) {}

  // `done` is called from the loop, or from Answer. Cancels an inspection in progress. `closely`: ranks, see
  // Inspect.
  void Begin(const Hosts& hosts, Done done, const std::vector<int>& closely = {});
  // The same for a user who asks: waits for its turn, and neither cancels nor delays one of Begin, which
  // answers it instead, without native stacks. All who wait get one answer. `hosts` is called when the turn
  // comes.
  // `wanted`: without its number.
  void Wish(std::function<Hosts()> hosts, Done done, protocol::Inspect wanted);
  void Answer(std::size_t host, const protocol::Inspected& inspected);
  // Cancels all. Wishes get an empty answer.
  void Cancel();

 private:
  struct Wished {
    std::function<Hosts()> hosts;
    Done done;
    protocol::Inspect wanted;
  };

  void Start(const Hosts& hosts, protocol::Inspect wanted);
  void Reset();
  void Finish();
  void Grant();

  Timer timer_;
  std::uint32_t number_ = 0;  // of the request in progress
  std::map<std::size_t, bool> answered_;
  protocol::Inspected all_;
  Done done_;
  std::vector<Wished> wishes_;   // that wait
  std::vector<Wished> granted_;  // that the inspection in progress answers
};

}  // namespace dtrun::job
