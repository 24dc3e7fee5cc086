// The process in which libpmix serves the ranks of this host (dtrun-pmix), for one generation.
//
// A child of the agent, which ends with it and is none of the job's own. Loop thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/process/rank_process.h"

namespace dtrun::node {

class PmixProcess {
 public:
  struct Events {
    // It has ended, without being asked: "died of signal 11 (SIGSEGV)".
    std::function<void(const std::string& how)> died;
    // What it prints, a line at a time; no more than a few.
    std::function<void(const std::string& line)> printed;
  };

  // `folder` is where it works, `agent` its end of the socket pair. `buffer` is for reads, and may be shared.
  static Result<std::unique_ptr<PmixProcess>> Start(boost::asio::io_context& loop,
                                                    const std::filesystem::path& folder, UniqueFd agent,
                                                    std::span<char> buffer, Events events);
  // Kills it and waits for its end.
  ~PmixProcess();

  pid_t pid() const { return pid_; }
  // Tells at once if it has ended, before whatever the loop would have told of first.
  void Look();
  // Lets it go on; whether it was stopped.
  bool Resume();
  // How it has ended; empty while it lives.
  std::string End() const;
  // It serves no more, for this reason: that is how it ends.
  void Condemn(const std::string& why);

 private:
  PmixProcess(pid_t pid, Events events) : pid_(pid), events_(std::move(events)) {}
  void Print(std::string_view bytes);

  const pid_t pid_;
  const Events events_;
  std::shared_ptr<process::RankProcess> process_;
  std::string condemned_;
  bool told_ = false;
  std::string line_;
  int lines_ = 0;
};

}  // namespace dtrun::node
