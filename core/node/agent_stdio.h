// The stdin and stdout of `dtrun agent`. stdin delivers the join request, and its end means that the agent is
// no longer needed. If no network leads to the root, both carry the control link (core/protocol/carrier.h).
//
// Owned by the agent; loop thread. Never blocks.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/asio.h"
#include "core/process/output_pipe.h"
#include "core/protocol/carrier.h"
#include "core/protocol/dialer.h"
#include "core/protocol/hello.h"

namespace dtrun::node {

class AgentStdio {
 public:
  struct Handlers {
    std::function<void(const std::string& line)> on_request;  // once
    std::function<void()> on_end;                             // once, at the end of stdin
  };

  AgentStdio(asio::io_context& loop, Handlers handlers);
  AgentStdio(const AgentStdio&) = delete;
  AgentStdio& operator=(const AgentStdio&) = delete;

  // The detour to the root through this connection, for the dialer. This object must outlive it. `host`: this
  // host's number.
  protocol::Detour DetourOf(int host);
  // Runs the loop for a moment, so that the last bytes of a closed link leave this process.
  void Drain();

 private:
  using Descriptor = asio::posix::stream_descriptor;

  void Read();
  void ReadOnce();
  void OnLine(std::string line);
  void Send(const std::string& lines);
  void Flush();

  asio::io_context& loop_;
  Handlers handlers_;
  Descriptor stdin_, stdout_;
  process::LineCutter lines_;
  bool requested_ = false;
  bool held_ = false;  // stdin is not read until the link has taken its input
  std::string queue_;
  bool waiting_ = false;  // for stdout to become writable
  int links_ = 0;
  std::optional<protocol::Carrier> carrier_;
};

// The address where the remote shell has reached this host, "10.0.0.7:22", from the value of SSH_CONNECTION.
// Empty if null or malformed.
std::string ReachedAt(const char* ssh_connection);
// `names`, with the address first from which this host was started, if it is among them: there is a route to
// it. SSH_CONNECTION and SLURM_LAUNCH_NODE_IPADDR contain that address (null: unset).
std::vector<std::string> NearestFirst(std::vector<std::string> names, const char* ssh_connection,
                                      const char* launch_node);

}  // namespace dtrun::node
