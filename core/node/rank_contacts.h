// Whether ranks of this host have joined others, whatever library they use for it, and whether they have
// one loaded that is there to be joined with.
//
// Looks from outside, rarely, and at one rank: that with the lowest number which lives. Evidence of joining
// is a socket on a port where the ranks of the job may meet, a connection from outside on a port where that
// rank listens, one with another rank of this host, or, in a job on several hosts, one with another machine;
// the kernel remembers the first two for a minute after they were closed. That none is seen proves nothing: a
// short job may have joined and parted between two looks. Evidence of a world of its own is an MPI that has
// started as a singleton, or a rank that is in the middle of a step of training, twice, while it has no such
// connection. Owned by the local host; loop thread.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/base/tcp_sockets.h"
#include "core/node/inspector.h"
#include "core/protocol/host.h"

namespace dtrun::node {

class RankContacts {
 public:
  // When it looks: twice as late each time, until the longest, and from the beginning once a framework is
  // loaded, which may take long. After `patience` with one ranks should have joined.
  struct Times {
    std::chrono::milliseconds first{500}, longest{32'000}, patience{90'000};
    std::chrono::milliseconds longest_unloaded{8'000};

    // From one look to the next, when it was `last` before: whether a framework was loaded before it, and is
    // now.
    std::chrono::milliseconds Next(std::chrono::milliseconds last, bool was_loaded, bool loaded) const {
      if (loaded && !was_loaded) return 2 * first;
      return std::min(2 * last, loaded ? longest : longest_unloaded);
    }
  };

  // `told` is called from the loop, or from Look, each time there is more to tell. `ranks`: processes, by
  // rank; `others`: there are ranks on other machines.
  RankContacts(boost::asio::io_context& loop, std::vector<std::uint16_t> ports, std::vector<pid_t> ranks,
               bool others, std::function<void(const protocol::Looked&)> told, Times times);
  ~RankContacts() { *ended_ = true; }
  RankContacts(const RankContacts&) = delete;
  RankContacts& operator=(const RankContacts&) = delete;

  // Once the ranks have ended: what they did since the last look, if a framework was loaded then.
  void Look();

 private:
  using Clock = std::chrono::steady_clock;

  void Wait(std::chrono::milliseconds after);
  // The first rank that lives and what is below it; empty: none does.
  std::vector<pid_t> Sample() const;
  bool HaveJoined(const std::vector<pid_t>& sample);
  bool IsWithRank(const TcpSocket& socket, const std::map<std::string, ino_t>& owners, pid_t sampled);
  // It works, as a look at its stacks or its files says; in what world its sockets say.
  void SawWork(bool for_certain);
  void Tell(const protocol::Looked& before);

  boost::asio::steady_timer timer_;
  const std::set<std::uint16_t> ports_;
  const std::vector<pid_t> ranks_;
  const bool others_;
  const std::function<void(const protocol::Looked&)> told_;
  const Times times_;
  const Clock::time_point begin_ = Clock::now();
  std::set<std::uint16_t> listens_;  // where ranks were seen to listen
  std::set<std::string> inner_;      // connections of a rank with itself, by their ends
  protocol::Looked looked_;
  Clock::time_point loaded_{};  // when a framework was seen first
  int worked_alone_ = 0;        // looks that saw so
  Inspector inspector_;
  bool over_ = false;                                                  // there is no more to tell
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for a timer that is due already
};

// The frameworks among the files that a process has mapped, as /proc/PID/maps lists them: "PyTorch".
std::vector<std::string> FrameworksIn(const std::string& maps);

}  // namespace dtrun::node
