// Ends the processes that ranks left behind: SIGTERM, a short grace, SIGKILL.
//
// Lives on the agent's loop thread, after all ranks have ended.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/agent/asio.h"
#include "core/agent/process.h"

namespace dtrun::agent {

class Leftovers {
 public:
  using Descriptor = boost::asio::posix::stream_descriptor;

  // `rank_of_group`: process group -> rank, for those that ran. `spared`: children of this
  // process that are not the job's.
  Leftovers(boost::asio::io_context& loop, std::map<pid_t, int> rank_of_group, std::vector<pid_t> spared = {})
      : loop_(loop), timer_(loop), rank_of_group_(std::move(rank_of_group)), spared_(std::move(spared)) {}

  // Asks every living process below this one to end. `done` runs once on the loop: when
  // they have ended or `grace` is over; at once when there are none. What is left then is
  // for KillDescendants. Returns a line per rank that left something: "rank 1 left 2
  // processes behind (4242 sleep, 4243 sh): stopped".
  std::vector<std::string> Stop(std::chrono::nanoseconds grace, std::function<void()> done);

  // Ends the wait.
  void Hurry();

 private:
  std::string OwnerOf(const Process& process) const;
  void Finish();

  boost::asio::io_context& loop_;
  boost::asio::steady_timer timer_;
  std::map<pid_t, int> rank_of_group_;
  std::vector<pid_t> spared_;
  std::vector<std::unique_ptr<Descriptor>> handles_;
  std::size_t living_ = 0;
  std::function<void()> done_;
};

}  // namespace dtrun::agent
