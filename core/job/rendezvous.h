// Where the ranks of one generation meet: the addresses of their hosts as the others reach them, the ports
// that those hold for them, and Horovod's rendezvous server where the plan needs one, empty for every
// generation. What the plan's tokens stand for is made of these.
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
  // `remote`: by host of the plan, null for this one; `prepared` likewise. Plan, hosts and loop outlive it.
  static Result<Rendezvous> Open(boost::asio::io_context& loop, const plan::Plan& plan,
                                 const std::vector<membership::RemoteHost*>& remote,
                                 std::vector<protocol::Prepared> prepared);

  // By host: `shared`, and what the hosts are told of each other and of themselves.
  std::vector<Tokens> TokensFor(Tokens shared) const;
  // Of the hosts, and of the server.
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
