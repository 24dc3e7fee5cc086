// Detects whether ranks of this host have joined others, with any library, and whether they have loaded a
// framework that normally joins ranks.
//
// Inspects, rarely and from outside, only the living rank with the lowest number. Evidence of joining is a
// socket on a port where the ranks of the job may meet, a connection from outside to a port where that rank
// listens, a connection with another rank of this host, or, in a job on several hosts, one with another
// machine. The kernel remembers the first two for a minute after they were closed. Lack of evidence proves
// nothing: a short job may have joined and parted between two looks. Evidence of a world of its own is an MPI
// that has started as a singleton, or a rank seen in a training step twice without such a connection. Owned
// by the local host; loop thread.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/port_user.h"
#include "core/base/timer.h"
#include "core/node/inspector.h"
#include "core/protocol/host.h"

namespace dtrun::node {

class RankContacts {
 public:
  // Interval between looks: doubles each time up to `longest`, and starts again at `first` once a framework
  // is loaded, which may take long. `patience` after loading one, ranks should have joined.
  struct Times {
    std::chrono::milliseconds first{500}, longest{32'000}, patience{90'000};
    std::chrono::milliseconds longest_unloaded{8'000};

    // The interval after one of `last`. `was_loaded`, `loaded`: whether a framework was loaded before that
    // look, and is now.
    std::chrono::milliseconds Next(std::chrono::milliseconds last, bool was_loaded, bool loaded) const {
      if (loaded && !was_loaded) return 2 * first;
      return std::min(2 * last, loaded ? longest : longest_unloaded);
    }
  };

  // The loop or Look calls `told` whenever there is news. `ranks`: processes, by rank; `others`: there are
  // ranks on other machines.
  RankContacts(asio::io_context& loop, std::vector<std::uint16_t> ports, std::vector<pid_t> ranks,
               bool others, std::function<void(const protocol::RendezvousSeen&)> told, Times times);

  // Call once the ranks have ended: checks what they did since the last look, if a framework was loaded then.
  void Look();

 private:
  using Clock = std::chrono::steady_clock;

  void Wait(std::chrono::milliseconds after);
  // The first living rank and its descendants; empty: none lives.
  std::vector<pid_t> Sample() const;
  bool HaveJoined(const std::vector<pid_t>& sample);
  bool IsWithRank(const TcpSocket& socket, const std::map<std::string, ino_t>& owners, pid_t sampled);
  // A look at its stacks or files shows that it works; its sockets show in which world.
  void SawWork(bool for_certain);
  void Tell(const protocol::RendezvousSeen& before);

  Timer timer_;
  const std::set<std::uint16_t> ports_;
  const std::vector<pid_t> ranks_;
  const bool others_;
  const std::function<void(const protocol::RendezvousSeen&)> told_;
  const Times times_;
  const Clock::time_point begin_ = Clock::now();
  std::set<std::uint16_t> listens_;  // ports on which ranks were seen listening
  std::set<std::string> inner_;      // connections of a rank to itself, by their ends
  protocol::RendezvousSeen looked_;
  Clock::time_point loaded_{};  // when a framework was first seen
  int worked_alone_ = 0;        // number of looks that showed this
  Inspector inspector_;
  bool over_ = false;  // no more news can come
};

// The frameworks among the mapped files in the text of /proc/PID/maps: "PyTorch".
std::vector<std::string> FrameworksIn(const std::string& maps);

}  // namespace dtrun::node
