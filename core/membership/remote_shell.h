// A command on another host, started through a remote shell such as ssh.
//
// Lines go to its stdin, which stays open while the object lives; its end tells the command that it is no
// longer needed. Its output comes back as lines. It never blocks the loop and its memory is bounded, whatever
// the command prints or fails to read. Owned by the root; loop thread.
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
#include "core/base/timer.h"
#include "core/process/child_process.h"
#include "core/process/output_pipe.h"
#include "core/protocol/carrier.h"

namespace dtrun::membership {

class RemoteShell {
 public:
  struct Handlers {
    // A line of either stream, truncated to kLongestLine.
    std::function<void(const std::string& line)> on_line;
    std::function<void(const process::Ending& ending)> on_ended;  // once, after its last line
    std::function<void()> on_written = {};                        // all that Write took is in its stdin
    std::function<void()> on_bytes = {};                          // it has printed more
  };

  static constexpr std::size_t kLongestLine = 4096;

  // Handlers must not destroy the shell. `pids` has the living shells, for code that ends the job's other
  // processes. `gate`, which must outlive it, pauses reading of the output; null: never.
  static Result<std::unique_ptr<RemoteShell>> Start(asio::io_context& loop,
                                                    const std::vector<std::string>& argv,
                                                    const std::string& line, std::set<pid_t>& pids,
                                                    Handlers handlers, process::OutputGate* gate = nullptr);
  ~RemoteShell();  // kills it if it still runs
  RemoteShell(const RemoteShell&) = delete;
  RemoteShell& operator=(const RemoteShell&) = delete;

  // Appends to its stdin. Does nothing once it reads no more.
  void Write(std::string_view bytes);
  // Bytes of Write that its stdin has not accepted.
  std::size_t queued_bytes() const { return queue_.size() - sent_; }
  bool living() const { return process_->living(); }
  // What it has printed, in bytes.
  std::uint64_t printed() const { return printed_; }

 private:
  using Descriptor = asio::posix::stream_descriptor;

  RemoteShell(asio::io_context& loop, std::set<pid_t>& pids, Handlers handlers)
      : pids_(pids), handlers_(std::move(handlers)), stdin_(loop) {}
  void Flush();
  void OnBytes(output::Stream stream, std::string_view bytes);

  std::set<pid_t>& pids_;
  Handlers handlers_;
  pid_t pid_ = 0;
  Descriptor stdin_;
  std::uint64_t printed_ = 0;
  std::string queue_;
  std::size_t sent_ = 0;  // bytes of the queue
  bool waiting_ = false;  // for its stdin to become writable
  std::vector<char> buffer_ = std::vector<char>(65536);
  process::LineCutter lines_[2] = {process::LineCutter(kLongestLine), process::LineCutter(kLongestLine)};
  std::shared_ptr<process::ChildProcess> process_;
};

// The connection that starts agents on other hosts: a remote shell, its join request, and the control links
// that go through it if the network blocks them (core/protocol/carrier.h). Owned by the membership.
class AgentShell {
 public:
  struct Handlers : protocol::CarriedLinks::Handlers {
    std::function<void(const process::Ending& ending)> on_ended;
    // Once, when it has printed kMostNoise that no agent sent.
    std::function<void()> on_noise = {};
  };

  // Of what a shell prints beside the links nothing is kept but its last line, and reading it takes a core. A
  // shell that has printed more than this is read slowly.
  static constexpr std::uint64_t kMostNoise = std::uint64_t{64} << 20;

  // `hosts`: numbers of those that it starts agents on. No handler may destroy it; `pids` as for RemoteShell.
  static Result<std::unique_ptr<AgentShell>> Start(asio::io_context& loop,
                                                   const std::vector<std::string>& argv,
                                                   const std::string& request, const std::vector<int>& hosts,
                                                   std::set<pid_t>& pids, Handlers handlers);

  bool living() const { return shell_->living(); }
  // Whether the agent there has reported that it runs.
  bool HasStarted(int host) const { return links_.HasStarted(host); }

 private:
  AgentShell(asio::io_context& loop, const std::vector<int>& hosts, Handlers handlers);
  void Take(const std::string& line);
  void SlowDown();

  std::function<void()> on_noise_;
  std::uint64_t carried_ = 0;  // bytes of lines of links
  std::uint64_t next_pause_ = kMostNoise;
  bool foreign_ = false;  // the line that is taken is no link's
  Timer pause_;
  process::OutputGate gate_;
  protocol::CarriedLinks links_;
  std::unique_ptr<RemoteShell> shell_;
};

}  // namespace dtrun::membership
