// Sends each host of a job a request (core/preflight) before the job is planned, all at once.
//
// Lives on the root's loop thread and runs the loop. This host answers in its own thread: an answer takes
// seconds, and the other hosts need heartbeats from the root meanwhile.
#pragma once

#include <optional>
#include <thread>
#include <vector>

#include "core/base/asio.h"
#include "core/membership/remote_host.h"
#include "core/preflight/preflight.h"
#include "core/process/user_signals.h"

namespace dtrun::membership {

class HostPreflight {
 public:
  // Both references must outlive it.
  HostPreflight(asio::io_context& loop, process::UserSignals& signals) : loop_(loop), signals_(signals) {}
  ~HostPreflight();
  HostPreflight(const HostPreflight&) = delete;
  HostPreflight& operator=(const HostPreflight&) = delete;

  // The answers by host; a null host is this one. The error names a lost host or says why an answer is
  // unreadable. DTRUN_ABORTED if the user ended the job. REQUIRES: a request for each host.
  Result<std::vector<preflight::Answer>> Run(const std::vector<preflight::Request>& requests,
                                             const std::vector<RemoteHost*>& hosts);
  // The signal that ended it, or 0.
  int interrupted() const { return interrupted_; }

 private:
  void Take(std::size_t host, Result<preflight::Answer> answer);

  asio::io_context& loop_;
  process::UserSignals& signals_;
  std::vector<std::optional<preflight::Answer>> answers_;
  std::size_t missing_ = 0;
  std::optional<Error> failure_;
  int interrupted_ = 0;
  std::thread here_;
};

}  // namespace dtrun::membership
