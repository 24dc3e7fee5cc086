// What a root may say to an agent that carries it out for real, made of a fuzzer's choices: ranks are
// /bin/true, networks are this machine, and numbers may fit or not.
#pragma once

#include <csignal>
#include <string>

#include "core/network/handshake.h"
#include "core/protocol/messages.h"
#include "tests/fuzz/agent_parts.h"
#include "tests/fuzz/choose.h"

namespace dtrun::fuzz {

// For the agent of `host`; each host has two ranks.
class Commands {
 public:
  Commands(Source& in, int host, int hosts) : in_(in), host_(host), hosts_(hosts) {}

  protocol::Prepare operator()(A<protocol::Prepare>) const {
    protocol::Prepare prepare;
    prepare.world_size = in_.Rarely() ? in_.Int() : 2 * hosts_;
    prepare.master_port = in_.Rarely() ? in_.Int() : -static_cast<int>(in_.Below(2));
    prepare.processes = ProcessesOf(host_, in_.Coin());
    if (in_.Rarely()) prepare.processes[0].rank = in_.Int();
    if (in_.Rarely()) prepare.processes[0].rank_count = in_.Int();
    if (in_.Rarely()) prepare.processes[0].argv[0] = in_.Name();
    if (in_.Coin()) prepare.task_ranks = {in_.Rarely() ? in_.Int() : 2};
    prepare.grace = std::chrono::nanoseconds(in_.Rarely() ? in_.Number() : 1'000'000);
    if (in_.Coin()) {
      prepare.mpi = {in_.Rarely() ? pmi::Kind::kNone : pmi::Kind::kPmi1,
                     "job-0.0",
                     {},
                     in_.Rarely() ? in_.Int() : host_};
      for (int i = 0; i < hosts_; ++i)
        prepare.mpi.hosts.push_back({"node", in_.Rarely() ? in_.Int() : 2 * i, in_.Rarely() ? in_.Int() : 2});
    }
    return prepare;
  }
  protocol::Start operator()(A<protocol::Start>) const {
    protocol::Start start;
    if (in_.Rarely()) start.rendezvous_ports = {1};
    return start;
  }
  protocol::Signal operator()(A<protocol::Signal>) const { return {in_.Coin() ? SIGUSR1 : in_.Int()}; }
  protocol::Stop operator()(A<protocol::Stop>) const { return {in_.Coin() ? SIGTERM : in_.Int()}; }
  protocol::Kill operator()(A<protocol::Kill>) const { return {}; }
  protocol::Exchanged operator()(A<protocol::Exchanged>) const {
    return {in_.Name(), in_.Name(), in_.Bytes(16)};
  }
  protocol::ClientData operator()(A<protocol::ClientData>) const { return {Client(), "x"}; }
  protocol::ClientClosed operator()(A<protocol::ClientClosed>) const { return {Client()}; }
  protocol::Over operator()(A<protocol::Over>) const { return {in_.Coin() ? 0 : in_.Int(), in_.Name()}; }
  protocol::Survey operator()(A<protocol::Survey>) const {
    return {in_.Index(3), in_.Coin() ? "auto" : in_.Name(), std::string(32, 'k')};
  }
  protocol::CheckConnectivity operator()(A<protocol::CheckConnectivity>) const {
    protocol::CheckConnectivity check;
    for (std::size_t i = in_.Below(3); i > 0; --i)
      check.peers.push_back({in_.Rarely() ? in_.Int() : 2 * static_cast<int>(i - 1), {Here()}});
    check.by_device = false;
    check.limit = std::chrono::milliseconds(1);
    return check;
  }
  protocol::Measure operator()(A<protocol::Measure>) const {
    return {in_.Index(2), in_.Index(3), Here(), false, in_.Coin() ? 0.0 : static_cast<double>(in_.Number())};
  }
  protocol::Called operator()(A<protocol::Called>) const {
    return SomeCalls(in_, 2 * static_cast<int>(in_.Below(static_cast<std::size_t>(hosts_))), 2 * hosts_);
  }
  protocol::Differed operator()(A<protocol::Differed>) const {
    return {{in_.Byte(), in_.Index(6), in_.Index(6), in_.Name(), true, in_.Coin()}};
  }
  protocol::RunPreflight operator()(A<protocol::RunPreflight>) const { return {}; }
  protocol::ReadClock operator()(A<protocol::ReadClock>) const {
    return {static_cast<std::uint32_t>(in_.Number())};
  }
  protocol::Inspect operator()(A<protocol::Inspect>) const {
    return {static_cast<std::uint32_t>(in_.Number())};
  }

 private:
  std::uint32_t Client() const { return in_.Coin() ? 1 : static_cast<std::uint32_t>(in_.Int()); }
  static network::Candidate Here() {
    network::Candidate here;
    here.interface = "lo";
    here.address = {dtrun::asio::ip::make_address("127.0.0.1"), 8};
    here.port = 1;
    return here;
  }

  Source& in_;
  const int host_;
  const int hosts_;
};

inline protocol::ToAgent ACommand(Source& in, int host, int hosts) {
  return AnyOf<protocol::ToAgent>(in, Commands(in, host, hosts));
}

}  // namespace dtrun::fuzz
