// Runs the layers of a run as processes: starts them, communicates with their ranks, ends them.
//
// All layers live at the same time; idle ones sleep. Owned by the sweep, on the thread of the agent process
// (core/node/guard.h), so that no process survives the run.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/process/lifeline.h"
#include "core/process/spawn.h"
#include "tools/bench/program/channel.h"
#include "tools/bench/program/layers.h"

namespace dtrun::bench {

class Session {
 public:
  // A running layer.
  struct Running {
    process::Child child;
    std::map<int, Channel> ranks;
    std::string output;       // the end of its output
    std::string description;  // from rank 0's hello
    std::string library;      // the backend's library, from the job; empty: none
    double joining = 0;       // seconds that the slowest rank needed to join
    bool ended = false;
  };

  Session(process::Lifeline& lifeline, std::filesystem::path folder, int ranks)
      : lifeline_(lifeline), folder_(std::move(folder)), ranks_(ranks) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Status Listen();
  // Returns once all ranks have sent hello. The layer lives until Stop or the end of the session.
  Result<Running*> Start(const Layer& layer);
  // Sends `line` to every rank and returns their answers, in rank order. An answer "error ..." becomes an
  // Error. After an Error the layer is unusable.
  Result<std::vector<std::string>> Ask(Running& layer, const std::string& line);
  void Stop(Running& layer);

  // The signal that ends the run, or 0. Operations in progress at that moment return an Error.
  int signal() const { return signal_; }

 private:
  using Clock = std::chrono::steady_clock;
  // Waits for the next event of the layers and handles it.
  Status Turn(Running* asked, Clock::time_point deadline);
  Status Accept();
  void Hear();
  void Drain(Running& layer);
  Status Meet(Running& layer);
  Status Admit(Running& layer);
  std::string CauseOf(const Running& layer) const;

  process::Lifeline& lifeline_;
  const std::filesystem::path folder_;
  const int ranks_;
  UniqueFd listener_;
  std::vector<std::unique_ptr<Running>> layers_;
  std::vector<Channel> strangers_;  // connected, no hello yet
  int signal_ = 0;
};

}  // namespace dtrun::bench
