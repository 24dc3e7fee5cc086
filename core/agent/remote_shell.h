// A command on another host, started by a remote shell such as ssh.
//
// Gives it one line on stdin, which stays open for as long as the object lives: its end tells
// the command that nobody wants it any more. Owned by the root; loop thread.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/agent/asio.h"
#include "core/agent/rank_process.h"
#include "core/base/fd.h"

namespace dtrun::agent {

class RemoteShell {
 public:
  struct Handlers {
    std::function<void(const std::string& line)> on_line;  // what it printed, either stream
    std::function<void(const Ending& ending)> on_ended;    // once, after its last line
  };

  // No handler may destroy the shell. `pids` holds the shells that live, for those who end the job's other
  // processes.
  static Result<std::unique_ptr<RemoteShell>> Start(boost::asio::io_context& loop,
                                                    const std::vector<std::string>& argv,
                                                    const std::string& line, std::set<pid_t>& pids,
                                                    Handlers handlers);
  ~RemoteShell();  // kills it when it still runs
  RemoteShell(const RemoteShell&) = delete;
  RemoteShell& operator=(const RemoteShell&) = delete;

  void SetHandlers(Handlers handlers) { handlers_ = std::move(handlers); }
  bool living() const { return process_->living(); }

 private:
  RemoteShell(std::set<pid_t>& pids, Handlers handlers) : pids_(pids), handlers_(std::move(handlers)) {}
  void OnBytes(output::Stream stream, std::string_view bytes);

  std::set<pid_t>& pids_;
  Handlers handlers_;
  pid_t pid_ = 0;
  UniqueFd stdin_;
  std::vector<char> buffer_ = std::vector<char>(4096);
  std::string partial_[2];
  std::shared_ptr<RankProcess> process_;
};

}  // namespace dtrun::agent
