// Serves PMI to the MPI libraries of this host's ranks, in terms of the agent's processes and events.
//
// Owned by the local host; loop thread. Does nothing in jobs with programs that need no PMI.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/timer.h"
#include "core/process/child_process.h"
#include "core/protocol/host.h"

namespace dtrun::node {

// The process in which libpmix serves the ranks of this host (dtrun-pmix), for one generation.
//
// A child of the agent that ends with it and is not part of the job.
class PmixProcess {
 public:
  struct Events {
    // It died on its own: "died of signal 11 (SIGSEGV)".
    std::function<void(const std::string& how)> died;
    // Its output, one line per call; only a few lines.
    std::function<void(const std::string& line)> printed;
  };

  // `folder` is its working folder, `agent` its end of the socket pair. `buffer` is for reads and may be
  // shared.
  static Result<std::unique_ptr<PmixProcess>> Start(asio::io_context& loop,
                                                    const std::filesystem::path& folder, UniqueFd agent,
                                                    std::span<char> buffer, Events events);
  // Kills it and waits for its end.
  ~PmixProcess();

  pid_t pid() const { return pid_; }
  // Reports its end at once, ahead of events queued on the loop.
  void Look();
  // Resumes it; returns whether it was stopped.
  bool Resume();
  // How it has ended; empty while it lives.
  std::string End() const;
  // Ends it with this reason: it can serve no more.
  void Condemn(const std::string& why);

 private:
  static constexpr std::size_t kLongestReason = 1000;

  PmixProcess(pid_t pid, Events events) : pid_(pid), events_(std::move(events)) {}
  void Print(std::string_view bytes);

  const pid_t pid_;
  const Events events_;
  std::shared_ptr<process::ChildProcess> process_;
  std::string condemned_;
  bool told_ = false;
  process::LineCutter lines_{kLongestReason};
  int told_lines_ = 0;
};

class MpiService {
 public:
  // `dir` is the private folder of the job. `buffer` is for reads and may be shared. The loop calls `emit`.
  MpiService(asio::io_context& loop, std::filesystem::path dir, std::span<char> buffer,
             std::function<void(const protocol::Event&)> emit)
      : loop_(loop), resume_(loop), dir_(std::move(dir)), buffer_(buffer), emit_(std::move(emit)) {}
  ~MpiService() { *ended_ = true; }

  // Begins a generation.
  Status Begin(const pmi::Job& job);
  // Admits every rank of the process. The start data is that of its first rank.
  Result<pmi::Admission> Admit(const plan::Process& process);
  void Complete(const protocol::Exchanged& exchanged);
  // Call before the end of a rank is reported: reports what the rank did, and a server that has died.
  void Look();
  // Call when a child of this process was stopped. A server that stays stopped is resumed, because ranks wait
  // for it.
  void OnStopped(pid_t child, int signal);
  void End();

  // The servers: children of this process that are not part of the job.
  std::vector<pid_t> servers() const;

 private:
  Result<UniqueFd> StartPmix();
  Result<pmi::Admission> Admit(int rank);
  void TellDeath();

  asio::io_context& loop_;
  Timer resume_;
  const std::filesystem::path dir_;
  const std::span<char> buffer_;
  const std::function<void(const protocol::Event&)> emit_;
  std::unique_ptr<PmixProcess> process_;
  std::string died_;                     // how the process died; not yet reported
  std::unique_ptr<pmi::Server> server_;  // only in a generation that needs one
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);
};

}  // namespace dtrun::node
