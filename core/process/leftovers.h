// Ends the processes that ranks left behind: a moment to end by themselves, SIGTERM, a short grace.
//
// Helpers of a rank end when the pipe to it closes, and clean up first: Python's resource tracker and
// torch's shared memory manager unlink segments. Such helpers are not reported. That manager waits for 2 s
// after its last client before it does, so it has this time where segments wait for it, and is told to end at
// once where none does. Lives on the agent's loop thread, after all ranks have ended.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/process/process.h"

namespace dtrun::process {

class Leftovers {
 public:
  // How long helpers have to end by themselves.
  static constexpr std::chrono::milliseconds kMoment{300};
  // And all of them, where torch's shared memory manager has segments to remove.
  static constexpr std::chrono::milliseconds kMomentOfManager{3000};

  using Say = std::function<void(const std::string& line)>;

  // `rank_of_group`: process group -> rank, for those that ran. `spared`: children of this
  // process that are not the job's. `say` gets a line for each rank that left something that had to be
  // stopped: "rank 1 left 2 processes behind (4242 sleep, 4243 sh): stopped".
  Leftovers(boost::asio::io_context& loop, std::map<pid_t, int> rank_of_group, Say say,
            std::vector<pid_t> spared = {});
  ~Leftovers() { *ended_ = true; }
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

  // `done` runs once on the loop: when every process below this one has ended, or `grace` is over after
  // `moment`. What is left then is for KillDescendants. `segments_wait`: torch's manager may have some to
  // remove.
  void Stop(std::chrono::nanoseconds moment, std::chrono::nanoseconds grace, bool segments_wait,
            std::function<void()> done);

  // What `say` was told of, so far.
  const std::vector<pid_t>& told() const { return told_; }

  // Ends the wait.
  void Hurry() { Finish(); }

 private:
  struct One {
    Process process;
    std::string owner;  // can be seen only while it lives
    std::unique_ptr<boost::asio::posix::stream_descriptor> ended;
    bool living = true;
    bool manager = false;  // torch's, of shared memory
  };

  void AskToEnd(std::chrono::nanoseconds grace);
  std::string OwnerOf(const Process& process) const;
  void OnEnded(One& one);
  void Finish();

  boost::asio::io_context& loop_;
  boost::asio::steady_timer timer_;
  std::map<pid_t, int> rank_of_group_;
  Say say_;
  std::vector<pid_t> spared_;
  std::vector<std::unique_ptr<One>> left_;
  std::vector<pid_t> told_;
  std::function<void()> done_;
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for handlers that are due already
};

}  // namespace dtrun::process
