// The stdin and stdout of `dtrun agent`: the join request comes in, its end says that nobody wants the agent
// any more, and the control link goes through both where no network leads to the root
// (core/protocol/carrier.h).
//
// Owned by the agent; loop thread. Never blocks.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/asio.h"
#include "core/process/line_cutter.h"
#include "core/protocol/carrier.h"
#include "core/protocol/dialer.h"
#include "core/protocol/join_request.h"

namespace dtrun::node {

class AgentStdio {
 public:
  struct Handlers {
    std::function<void(const std::string& line)> on_request;  // once
    std::function<void()> on_end;                             // once, of stdin
  };

  AgentStdio(boost::asio::io_context& loop, Handlers handlers);
  AgentStdio(const AgentStdio&) = delete;
  AgentStdio& operator=(const AgentStdio&) = delete;

  // The way to the root through this connection; for the dialer, which this outlives. `host`: the number of
  // this one.
  protocol::Detour DetourOf(int host);
  // Runs the loop a moment, so that the last words of a link that is closed leave this process.
  void Drain();

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;

  void Read();
  void ReadOnce();
  void OnLine(std::string line);
  void Send(const std::string& lines);
  void Flush();

  boost::asio::io_context& loop_;
  Handlers handlers_;
  Descriptor stdin_, stdout_;
  process::LineCutter lines_;
  bool requested_ = false;
  bool held_ = false;  // stdin is read no further until the link has taken what came
  std::string queue_;
  bool waiting_ = false;  // for room in stdout
  int links_ = 0;
  std::optional<protocol::Carrier> carrier_;
};

// Where the remote shell has reached this host, "10.0.0.7:22", by the value of SSH_CONNECTION; empty: null or
// of another form.
std::string ReachedAt(const char* ssh_connection);
// `names` with the address first that this host was started from, as SSH_CONNECTION and
// SLURM_LAUNCH_NODE_IPADDR say (null: unset), if it is among them: it has a route here.
std::vector<std::string> NearestFirst(std::vector<std::string> names, const char* ssh_connection,
                                      const char* launch_node);

}  // namespace dtrun::node
