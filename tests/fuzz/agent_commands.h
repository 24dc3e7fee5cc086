// What a root may say to an agent that carries it out for real, made of a fuzzer's choices: ranks are
// /bin/true, networks are this machine, and numbers may fit or not.
#pragma once

#include <csignal>
#include <string>

#include "core/agent/messages.h"
#include "core/net/greeting.h"
#include "tests/fuzz/agent_parts.h"
#include "tests/fuzz/choose.h"

namespace dtrun::fuzz {

// To the agent of `host`, each of whose hosts has two ranks.
class Commands {
 public:
  Commands(Source& in, int host, int hosts) : in_(in), host_(host), hosts_(hosts) {}

  agent::Prepare operator()(A<agent::Prepare>) const {
    agent::Prepare prepare;
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
  agent::Start operator()(A<agent::Start>) const {
    agent::Start start;
    if (in_.Rarely()) start.meeting_ports = {1};
    return start;
  }
  agent::Signal operator()(A<agent::Signal>) const { return {in_.Coin() ? SIGUSR1 : in_.Int()}; }
  agent::Stop operator()(A<agent::Stop>) const { return {in_.Coin() ? SIGTERM : in_.Int()}; }
  agent::Kill operator()(A<agent::Kill>) const { return {}; }
  agent::Exchanged operator()(A<agent::Exchanged>) const { return {in_.Name(), in_.Name(), in_.Bytes(16)}; }
  agent::ClientData operator()(A<agent::ClientData>) const { return {Client(), "x"}; }
  agent::ClientClosed operator()(A<agent::ClientClosed>) const { return {Client()}; }
  agent::Over operator()(A<agent::Over>) const { return {in_.Coin() ? 0 : in_.Int(), in_.Name()}; }
  agent::Survey operator()(A<agent::Survey>) const {
    return {in_.Index(3), in_.Coin() ? "auto" : in_.Name(), std::string(32, 'k')};
  }
  agent::Prove operator()(A<agent::Prove>) const {
    agent::Prove prove;
    for (std::size_t i = in_.Below(3); i > 0; --i)
      prove.peers.push_back({in_.Rarely() ? in_.Int() : 2 * static_cast<int>(i - 1), {Here()}});
    prove.by_device = false;
    prove.limit = std::chrono::milliseconds(1);
    return prove;
  }
  agent::Measure operator()(A<agent::Measure>) const {
    return {in_.Index(2), in_.Index(3), Here(), false, in_.Coin() ? 0.0 : static_cast<double>(in_.Number())};
  }
  agent::Called operator()(A<agent::Called>) const {
    return SomeCalls(in_, 2 * static_cast<int>(in_.Below(static_cast<std::size_t>(hosts_))), 2 * hosts_);
  }
  agent::Differed operator()(A<agent::Differed>) const {
    return {{in_.Byte(), in_.Index(6), in_.Index(6), in_.Name(), true, in_.Coin()}};
  }
  agent::Examine operator()(A<agent::Examine>) const { return {"no question", {}}; }
  agent::Inspect operator()(A<agent::Inspect>) const { return {static_cast<std::uint32_t>(in_.Number())}; }

 private:
  std::uint32_t Client() const { return in_.Coin() ? 1 : static_cast<std::uint32_t>(in_.Int()); }
  static net::Candidate Here() {
    net::Candidate here;
    here.interface = "lo";
    here.address = {dtrun::asio::ip::make_address("127.0.0.1"), 8};
    here.port = 1;
    return here;
  }

  Source& in_;
  const int host_;
  const int hosts_;
};

inline agent::ToAgent ACommand(Source& in, int host, int hosts) {
  return AnyOf<agent::ToAgent>(in, Commands(in, host, hosts));
}

}  // namespace dtrun::fuzz
