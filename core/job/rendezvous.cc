#include "core/job/rendezvous.h"

#include <utility>

#include "core/environments/dialect.h"
#include "core/hosts/this_machine.h"
#include "core/membership/cluster.h"
#include "core/plan/dialects.h"

namespace dtrun::job {

Result<Rendezvous> Rendezvous::Open(asio::io_context& loop, const plan::Plan& plan,
                                    const std::vector<membership::RemoteHost*>& remote,
                                    std::vector<protocol::Prepared> prepared) {
  Rendezvous out(plan, remote, std::move(prepared));
  if (!plan::NeedsRendezvous(plan)) return out;
  auto server =
      store::HorovodServer::Listen(loop, out.OwnAddress(), environments::HorovodScopes(plan::TableOf(plan)));
  if (!server) return server.error();
  out.server_ = *std::move(server);
  return out;
}

std::vector<Tokens> Rendezvous::TokensFor(Tokens shared) const {
  if (server_ != nullptr) {
    shared[plan::kTokenRendezvousAddress] = OwnAddress();
    shared[plan::kTokenRendezvousPort] = std::to_string(server_->port());
  }
  const bool several = prepared_.size() > 1;
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    for (const auto& [rank, port] : prepared_[i].task_ports) {
      shared[plan::TaskPortToken(rank)] = std::to_string(port);
    }
    if (several && i > 0) shared[plan::HostAddressToken(i)] = AddressOf(i);
    if (prepared_[i].master_port < 0) continue;
    shared[plan::kTokenPort] = std::to_string(prepared_[i].master_port);
    if (several) shared[plan::kTokenAddress] = AddressOf(i);
  }
  std::vector<Tokens> tokens;
  for (const protocol::Prepared& host : prepared_) {
    tokens.push_back(shared);
    tokens.back()[plan::kTokenStore] = host.store;
    tokens.back()[plan::kTokenRecorder] = host.recorder;
  }
  return tokens;
}

std::vector<std::uint16_t> Rendezvous::Ports() const {
  std::vector<std::uint16_t> ports;
  for (const protocol::Prepared& host : prepared_) {
    if (host.master_port >= 0) ports.push_back(static_cast<std::uint16_t>(host.master_port));
    for (const auto& task : host.task_ports) ports.push_back(static_cast<std::uint16_t>(task.second));
  }
  if (server_ != nullptr) ports.push_back(static_cast<std::uint16_t>(server_->port()));
  return ports;
}

// The host's address as other hosts reach it.
std::string Rendezvous::AddressOf(std::size_t host) const {
  if (!plan_.network.empty()) return plan_.hosts[host].address;
  return remote_[host] != nullptr ? remote_[host]->Address() : OwnAddress();
}

std::string Rendezvous::OwnAddress() const {
  for (const membership::RemoteHost* other : remote_) {
    if (other == nullptr) continue;
    std::string own = hosts::AddressTowards(other->Address());
    if (!own.empty()) return own;
  }
  return "127.0.0.1";
}

}  // namespace dtrun::job
