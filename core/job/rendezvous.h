// Where the ranks of one generation meet: the hosts' addresses as other hosts reach them, the ports that
// hosts hold for their ranks, and, if the plan needs it, Horovod's rendezvous server, new for every
// generation. The values of the plan's tokens are made from these.
//
// Owned by the root's run; loop thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/job/record.h"
#include "core/membership/remote_host.h"
#include "core/plan/plan.h"
#include "core/protocol/host.h"
#include "core/store/horovod_server.h"

namespace dtrun::job {

class Rendezvous {
 public:
  // `remote`: by host of the plan, null for this one; `prepared` likewise. Plan, hosts and loop must outlive
  // it.
  static Result<Rendezvous> Open(asio::io_context& loop, const plan::Plan& plan,
                                 const std::vector<membership::RemoteHost*>& remote,
                                 std::vector<protocol::Prepared> prepared);

  // By host: `shared`, plus the values that hosts need about each other and about themselves.
  std::vector<Tokens> TokensFor(Tokens shared) const;
  // The ports of the hosts and of the server.
  std::vector<std::uint16_t> Ports() const;

 private:
  Rendezvous(const plan::Plan& plan, const std::vector<membership::RemoteHost*>& remote,
             std::vector<protocol::Prepared> prepared)
      : plan_(plan), remote_(remote), prepared_(std::move(prepared)) {}

  std::string AddressOf(std::size_t host) const;
  std::string OwnAddress() const;

  const plan::Plan& plan_;
  const std::vector<membership::RemoteHost*>& remote_;
  std::vector<protocol::Prepared> prepared_;
  std::unique_ptr<store::HorovodServer> server_;
};

}  // namespace dtrun::job
