// A command on another host, started by a remote shell such as ssh.
//
// Lines go to its stdin, which stays open for as long as the object lives: its end tells the command that
// nobody wants it any more. What it prints comes back as lines. Nothing of this blocks the loop or grows
// without bound, whatever the command prints, or fails to read. Owned by the root; loop thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/asio.h"
#include "core/base/result.h"
#include "core/process/line_cutter.h"
#include "core/process/output_gate.h"
#include "core/process/rank_process.h"

namespace dtrun::membership {

class RemoteShell {
 public:
  struct Handlers {
    // What it printed, either stream; the beginning of a line that is longer than kLongestLine.
    std::function<void(const std::string& line)> on_line;
    std::function<void(const process::Ending& ending)> on_ended;  // once, after its last line
    std::function<void()> on_written = {};                        // all that Write took is in its stdin
    std::function<void()> on_bytes = {};                          // it has printed more
  };

  static constexpr std::size_t kLongestLine = 4096;

  // No handler may destroy the shell. `pids` holds the shells that live, for those who end the job's other
  // processes. `gate`, which outlives it, holds up what it prints; null: nothing does.
  static Result<std::unique_ptr<RemoteShell>> Start(boost::asio::io_context& loop,
                                                    const std::vector<std::string>& argv,
                                                    const std::string& line, std::set<pid_t>& pids,
                                                    Handlers handlers, process::OutputGate* gate = nullptr);
  ~RemoteShell();  // kills it when it still runs
  RemoteShell(const RemoteShell&) = delete;
  RemoteShell& operator=(const RemoteShell&) = delete;

  // For its stdin, behind what is there already; nothing once it reads no more.
  void Write(std::string_view bytes);
  // What Write took and its stdin did not.
  std::size_t queued_bytes() const { return queue_.size() - sent_; }
  bool living() const { return process_->living(); }
  // What it has printed, in bytes.
  std::uint64_t printed() const { return printed_; }

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;

  RemoteShell(boost::asio::io_context& loop, std::set<pid_t>& pids, Handlers handlers)
      : pids_(pids), handlers_(std::move(handlers)), stdin_(loop) {}
  void Flush();
  void OnBytes(output::Stream stream, std::string_view bytes);

  std::set<pid_t>& pids_;
  Handlers handlers_;
  pid_t pid_ = 0;
  Descriptor stdin_;
  std::uint64_t printed_ = 0;
  std::string queue_;
  std::size_t sent_ = 0;  // of the queue
  bool waiting_ = false;  // for room in its stdin
  std::vector<char> buffer_ = std::vector<char>(65536);
  process::LineCutter lines_[2] = {process::LineCutter(kLongestLine), process::LineCutter(kLongestLine)};
  std::shared_ptr<process::RankProcess> process_;
};

}  // namespace dtrun::membership
