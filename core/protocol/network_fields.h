// Fields of the messages that find the network between the hosts.
//
// Pure; any thread.
#pragma once

#include <string>

#include "core/protocol/message_fields.h"
#include "core/protocol/messages.h"

namespace dtrun::protocol::fields {

template <class C>
void Fields(C& c, Of<C, network::Address>& m) {
  std::string text = m.ip.to_string();
  c.Text(text, kMostName);
  c.Number(m.prefix);
  if constexpr (!C::kWrites) {
    error_code problem;
    m.ip = asio::ip::make_address(text, problem);
    if (problem) c.Fail("it has no IP address");
  }
}
template <class C>
void Fields(C& c, Of<C, network::Candidate>& m) {
  c.Text(m.interface, kMostName);
  c.Number(m.index);
  Choice(c, m.kind, network::Kind::kLoopback, network::Kind::kVirtual);
  Fields<C>(c, m.address);
  c.Flag(m.first_address);
  c.Flag(m.of_ssh);
  c.Flag(m.default_route);
  c.Number(m.mtu);
  c.Number(m.speed_mbps);
  c.Text(m.rdma, kMostName);
  c.Number(m.port);
}
template <class C>
void Fields(C& c, Of<C, Survey>& m) {
  c.Number(m.host);
  c.Text(m.rule, kAny);
  c.Text(m.connectivity_key, kMostName);
}
template <class C>
void Fields(C& c, Of<C, CheckConnectivity>& m) {
  List(c, m.peers, kMostHosts, [&](auto& peer) {
    c.Number(peer.host);
    List(c, peer.candidates, kMostCandidates, [&](auto& candidate) { Fields<C>(c, candidate); });
  });
  c.Flag(m.by_device);
  Duration<C>(c, m.limit);
}
template <class C>
void Fields(C& c, Of<C, Measure>& m) {
  c.Number(m.from);
  c.Number(m.peer);
  Fields<C>(c, m.to);
  c.Flag(m.by_device);
  c.Number(m.pace);
}
template <class C>
void Fields(C& c, Of<C, Surveyed>& m) {
  List(c, m.offer.candidates, kMostCandidates, [&](auto& candidate) { Fields<C>(c, candidate); });
  List(c, m.offer.left_out, kMostCandidates, [&](auto& one) {
    c.Text(one.interface, kMostName);
    Choice(c, one.kind, network::Kind::kLoopback, network::Kind::kVirtual);
    c.Text(one.address, kMostName);
    c.Text(one.why, kMostName);
  });
  c.Texts(m.offer.unmatched, kMostCandidates, kMostName);
  c.Flag(m.offer.has_rdma);
}
template <class C>
void Fields(C& c, Of<C, ConnectivityChecked>& m) {
  List(c, m.attempts, kMostEntries, [&](auto& attempt) {
    c.Number(attempt.from);
    c.Number(attempt.peer);
    c.Number(attempt.to);
    c.Text(attempt.why, kMostName);
    Duration<C>(c, attempt.round_trip);
    c.Text(attempt.leaves_by, kMostName);
  });
}
template <class C>
void Fields(C& c, Of<C, Measured>& m) {
  c.Number(m.throughput.bits_per_s);
  Duration<C>(c, m.throughput.round_trip);
  c.Number(m.throughput.loss);
}

}  // namespace dtrun::protocol::fields
