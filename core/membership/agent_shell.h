// The connection that starts agents on other hosts: a remote shell, its join request, and the control links
// that go through it if the network blocks them (core/protocol/carrier.h).
//
// Owned by the membership; loop thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/timer.h"
#include "core/membership/remote_shell.h"
#include "core/protocol/carrier.h"

namespace dtrun::membership {

class AgentShell {
 public:
  struct Handlers : protocol::CarriedLinks::Handlers {
    std::function<void(const process::Ending& ending)> on_ended;
    // Once, when it has printed kMostNoise that no agent sent.
    std::function<void()> on_noise = {};
  };

  // Of what a shell prints beside the links nothing is kept but its last line, and reading it takes a core. A
  // shell that has printed more than this is read slowly.
  static constexpr std::uint64_t kMostNoise = std::uint64_t{64} << 20;

  // `hosts`: numbers of those that it starts agents on. No handler may destroy it; `pids` as for RemoteShell.
  static Result<std::unique_ptr<AgentShell>> Start(asio::io_context& loop,
                                                   const std::vector<std::string>& argv,
                                                   const std::string& request, const std::vector<int>& hosts,
                                                   std::set<pid_t>& pids, Handlers handlers);

  bool living() const { return shell_->living(); }
  // Whether the agent there has reported that it runs.
  bool HasStarted(int host) const { return links_.HasStarted(host); }

 private:
  AgentShell(asio::io_context& loop, const std::vector<int>& hosts, Handlers handlers);
  void Take(const std::string& line);
  void SlowDown();

  std::function<void()> on_noise_;
  std::uint64_t carried_ = 0;  // bytes of lines of links
  std::uint64_t next_pause_ = kMostNoise;
  bool foreign_ = false;  // the line that is taken is no link's
  Timer pause_;
  process::OutputGate gate_;
  protocol::CarriedLinks links_;
  std::unique_ptr<RemoteShell> shell_;
};

}  // namespace dtrun::membership
