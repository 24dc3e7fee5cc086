// Ends the processes that ranks left behind: waits a moment for them to exit, sends SIGTERM, then waits a
// short grace period.
//
// Helper processes of a rank exit when their pipe to it closes, and clean up first: Python's resource tracker
// and torch's shared memory manager unlink segments. Such helpers are not reported. The manager waits 2 s
// after its last client before it cleans up. It gets this time if it may have segments to remove; otherwise
// it gets SIGTERM at once. Lives on the agent's loop thread, after all ranks have ended.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/timer.h"
#include "core/process/process.h"

namespace dtrun::process {

class Leftovers {
 public:
  // How long helpers may take to exit by themselves.
  static constexpr std::chrono::milliseconds kMoment{300};
  // The same for all helpers when torch's shared memory manager has segments to remove.
  static constexpr std::chrono::milliseconds kMomentOfManager{3000};

  using Say = std::function<void(const std::string& line)>;

  // `rank_of_group`: process group -> rank, for the ranks that ran. `spared`: children of this process that
  // are not part of the job. `say` gets a line for each rank that left a process that had to be stopped:
  // "rank 1 left 2 processes behind (4242 sleep, 4243 sh): stopped".
  Leftovers(asio::io_context& loop, std::map<pid_t, int> rank_of_group, Say say,
            std::vector<pid_t> spared = {});
  ~Leftovers() { *ended_ = true; }
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

  // Calls `done` once on the loop: when every process below this one has ended, or when `moment` and then
  // `grace` have passed. KillDescendants ends what is left then. `segments_wait`: torch's manager may have
  // segments to remove.
  void Stop(std::chrono::nanoseconds moment, std::chrono::nanoseconds grace, bool segments_wait,
            std::function<void()> done);

  // The processes reported to `say` so far.
  const std::vector<pid_t>& told() const { return told_; }

  // Ends the wait.
  void Hurry() { Finish(); }

 private:
  struct One {
    Process process;
    std::string owner;  // readable only while it lives
    std::unique_ptr<asio::posix::stream_descriptor> ended;
    bool living = true;
    bool manager = false;  // torch's shared memory manager
  };

  void AskToEnd(std::chrono::nanoseconds grace);
  std::string OwnerOf(const Process& process) const;
  void OnEnded(One& one);
  void Finish();

  asio::io_context& loop_;
  Timer timer_;
  std::map<pid_t, int> rank_of_group_;
  Say say_;
  std::vector<pid_t> spared_;
  std::vector<std::unique_ptr<One>> left_;
  std::vector<pid_t> told_;
  std::function<void()> done_;
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for queued handlers
};

}  // namespace dtrun::process
