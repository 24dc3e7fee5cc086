// Asks the hosts of a job a request each (core/preflight) before it is planned, all at once.
//
// Lives on the root's loop thread, which it runs. This host is asked in a thread of its own:
// an answer takes seconds, and the other hosts want to hear from the root meanwhile.
#pragma once

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/asio.h"
#include "core/membership/remote_host.h"
#include "core/preflight/preflight.h"
#include "core/process/user_signals.h"

namespace dtrun::membership {

class HostPreflight {
 public:
  // Both outlive it.
  HostPreflight(boost::asio::io_context& loop, process::UserSignals& signals)
      : loop_(loop), signals_(signals) {}
  ~HostPreflight();
  HostPreflight(const HostPreflight&) = delete;
  HostPreflight& operator=(const HostPreflight&) = delete;

  // The answers by host; a null host is this one. The error names a host that was lost,
  // or says why an answer cannot be read; DTRUN_ABORTED when the user ended the job. REQUIRES: a request for
  // each host.
  Result<std::vector<preflight::Answer>> Run(const std::vector<preflight::Request>& requests,
                                             const std::vector<RemoteHost*>& hosts);
  // The signal that ended it, or 0.
  int interrupted() const { return interrupted_; }

 private:
  void Take(std::size_t host, Result<preflight::Answer> answer);

  boost::asio::io_context& loop_;
  process::UserSignals& signals_;
  std::vector<std::optional<preflight::Answer>> answers_;
  std::size_t missing_ = 0;
  std::optional<Error> failure_;
  int interrupted_ = 0;
  std::thread here_;
};

}  // namespace dtrun::membership
