// The process in which libpmix serves the ranks of this host (dtrun-pmix), for one generation.
//
// A child of the agent that ends with it and is not part of the job. Loop thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/process/child_process.h"

namespace dtrun::node {

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
  PmixProcess(pid_t pid, Events events) : pid_(pid), events_(std::move(events)) {}
  void Print(std::string_view bytes);

  const pid_t pid_;
  const Events events_;
  std::shared_ptr<process::ChildProcess> process_;
  std::string condemned_;
  bool told_ = false;
  std::string line_;
  int lines_ = 0;
};

}  // namespace dtrun::node
