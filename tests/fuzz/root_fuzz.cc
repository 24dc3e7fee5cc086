// Agents that know the key and say anything: the root meets them (membership), proves their network, asks
// them, starts ranks on them and judges, whatever they answer and in whichever order. It may lose hosts and
// fail; it neither crashes nor waits for what can no longer come.
//
// An input is a program for up to three agents. Most steps do what the root has asked for, so that deep
// states are reached; others say something else, break bytes, or vanish.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>

#include "core/job/controller.h"
#include "core/job/rendezvous.h"
#include "core/membership/host_preflight.h"
#include "core/membership/membership.h"
#include "core/membership/network.h"
#include "core/preflight/preflight.h"
#include "core/process/testing.h"
#include "core/protocol/testing_channel.h"
#include "core/store/protocol.h"
#include "core/store/server.h"
#include "core/verdict/verdict.h"
#include "tests/fuzz/agent_events.h"
#include "tests/fuzz/target.h"

namespace root_fuzz {

using namespace dtrun;
using namespace dtrun::process;
using namespace dtrun::verdict;
using namespace dtrun::protocol;
using namespace dtrun::membership;
using namespace dtrun::job;
namespace stubs = dtrun::protocol::testing;
using dtrun::fuzz::Source;

struct Exhausted {};

constexpr char kKey[] = "0000000000000000000000000000000000000000000000000000000000000000";

class Root {
 public:
  Root(const std::uint8_t* data, std::size_t size)
      : in_(data, size), hosts_(1 + static_cast<int>(in_.Below(3))), together_(in_.Coin()) {
    cluster_.connect = Cluster::Connect::kManual;
    for (int i = 0; i < hosts_; ++i) cluster_.hosts.push_back("node" + std::to_string(i));
    cluster_.names = {"127.0.0.1"};
    cluster_.min_hosts = 1 + in_.Below(static_cast<std::size_t>(hosts_));
    cluster_.join_timeout = std::chrono::hours(1);
    cluster_.lost_after = std::chrono::seconds(10);
    cluster_.share_machines = in_.Coin();
    kind_ = static_cast<pmi::Kind>(in_.Below(3));
    services_.serve = [this](store::Socket client) { store_->Serve(std::move(client)); };
    services_.say = [](const std::string&) {};
    services_.kill_limit = in_.Coin() ? std::chrono::nanoseconds(0) : std::chrono::hours(1);
    store_.emplace(kKey, 0, store::Events{});
    membership_.emplace(loop_, signals_, cluster_, "job", shells_, services_);
    Step();
  }

  void Run() {
    try {
      for (std::uint64_t generation = 0; generation < 3; ++generation) {
        if (!RunGeneration(generation)) break;
      }
      membership_->Dismiss(0, "");
    } catch (const Exhausted&) {
    }
  }

 private:
  using Stub = std::shared_ptr<stubs::AgentStub>;
  struct Agent {
    Stub stub;
    int number = 0;
    std::deque<std::string> due;  // answers to what the root has said
    Protocol told;                // by both, as an agent has it
    std::uint32_t last_client = 0;
  };

  // One turn of an agent; as long as there are any, the loop never waits.
  void Step() {
    boost::asio::post(loop_, [this] {
      if (in_.empty()) throw Exhausted();
      Act();
      Step();
    });
  }

  void Act() {
    const std::uint8_t what = in_.Byte();
    if (agents_.empty() || what % 32 == 0) return Join();
    Agent& agent = agents_[in_.Below(agents_.size())];
    switch (what % 32) {
      case 1: return agent.stub->Vanish();
      case 2: return Say(agent, in_.Bytes(255));
      case 3: return Signal();
      case 4:
      case 5:
      case 6:
      case 7: return Say(agent, fuzz::AnEvent(in_, agent.number, hosts_));
      case 8: return Break(agent);
      case 9: return Client(agent);
      default: break;
    }
    if (agent.due.empty()) return;
    const std::string bytes = std::move(agent.due.front());
    agent.due.pop_front();
    Say(agent, bytes);
  }

  void Join() {
    protocol::Hello hello;
    hello.job = "job";
    hello.host_index = in_.Index(static_cast<std::size_t>(hosts_));
    hello.host_name = "node" + std::to_string(hello.host_index);
    if (agents_.size() > 8 || !membership_->Admit(hello, "127.0.0.1:1")) return;
    Agent& agent = agents_.emplace_back();
    agent.stub = std::make_shared<stubs::AgentStub>();
    agent.number = hello.host_index;
    agent.stub->on_told = [this, index = agents_.size() - 1](const ToAgent& told) {
      Require(agents_[index], told);
      Answer(agents_[index], told);
    };
    membership_->Join(hello, std::make_unique<stubs::StubChannel>(agent.stub));
    Due(agent,
        Introduction{hello.host_name, in_.Rarely() ? "one" : "machine" + hello.host_name, "0.0=0,1", {}});
  }

  void Say(Agent& agent, const std::string& bytes) {
    const auto message = DecodeToRoot(bytes);
    if (message) (void)agent.told.Check(*message);  // the root lets go of one that fails
    agent.stub->SayBytes(bytes);
  }

  // An agent that has kept to the protocol so far is told nothing that it would have to refuse.
  static void Require(Agent& agent, const ToAgent& told) {
    const Result<bool> valid = agent.told.Check(told);
    if (valid) return;
    std::fprintf(stderr, "the root broke the protocol: %s\n", valid.error().text.c_str());
    std::abort();
  }

  static void Due(Agent& agent, const ToRoot& message) { agent.due.push_back(Encode(message)); }

  // What an agent would say to it.
  void Answer(Agent& agent, const ToAgent& told) {
    const int first = 2 * agent.number;
    if (const auto* prepare = std::get_if<Prepare>(&told)) {
      Prepared prepared{prepare->master_port >= 0 ? 1234 : -1, {}, "/s", "/r"};
      for (const int rank : prepare->task_ranks) prepared.task_ports.emplace_back(rank, 2000 + rank);
      Due(agent, prepared);
    } else if (std::holds_alternative<Start>(told)) {
      Due(agent, together_ ? Started{{7}} : Started{{7, 8}});
      if (kind_ != pmi::Kind::kNone) Due(agent, MpiStarted{first});
      if (kind_ != pmi::Kind::kNone) Due(agent, Offered{{"e", AllHosts(), "bytes"}});
      Due(agent, Output{first + 1, output::Stream::kOut, "line\n"});
      if (in_.Coin()) End(agent);
    } else if (std::holds_alternative<Stop>(told) || std::holds_alternative<Kill>(told)) {
      End(agent);
    } else if (std::holds_alternative<Survey>(told)) {
      Surveyed surveyed;
      surveyed.offer.candidates = {fuzz::ACandidate(in_, agent.number)};
      Due(agent, surveyed);
    } else if (const auto* check = std::get_if<CheckConnectivity>(&told)) {
      ConnectivityChecked connected;
      for (const network::Peer& peer : check->peers) {
        for (std::size_t to = 0; to < peer.candidates.size(); ++to)
          connected.attempts.push_back(
              {0, peer.host, static_cast<int>(to), in_.Rarely() ? "no answer" : "", {}});
      }
      Due(agent, connected);
    } else if (const auto* inspect = std::get_if<Inspect>(&told)) {
      Due(agent, Inspected{inspect->number, {}, 0});
    } else if (std::holds_alternative<Measure>(told)) {
      Due(agent, Measured{{1e9, std::chrono::microseconds(9)}});
    } else if (std::holds_alternative<protocol::RunPreflight>(told)) {
      Due(agent, PreflightAnswered{});
    }
  }

  void End(Agent& agent) {
    const int first = 2 * agent.number;
    const Ending ending = fuzz::AnEnding(in_);
    if (together_ && in_.Coin()) Due(agent, RankEnded{first + 1, 9, ending});
    Due(agent, Ended{first, in_.Coin() ? Ending() : ending, 0});
    if (!together_) Due(agent, Ended{first + 1, {}, 0});
    Due(agent, Gone{"calls"});
  }

  std::vector<int> AllHosts() const {
    std::vector<int> all;
    for (int i = 0; i < hosts_; ++i) all.push_back(i);
    return all;
  }

  // An answer that is due, with a few of its bytes changed.
  void Break(Agent& agent) {
    if (agent.due.empty()) return;
    std::string& bytes = agent.due.front();
    for (std::size_t i = 1 + in_.Count(); i > 0 && !bytes.empty(); --i)
      bytes[in_.Byte() % bytes.size()] = static_cast<char>(in_.Byte());
  }

  // A client of the store there, which may even know the key of the job.
  void Client(Agent& agent) {
    if (agent.last_client == 0 || in_.Rarely())
      return Say(agent, Encode(ToRoot(ClientOpened{++agent.last_client})));
    store::Request request;
    request.id = in_.Byte();
    request.body = store::Hello{store::kProtocolVersion, kKey, 0, in_.Int(), true};
    const std::string bytes = in_.Coin() ? Encode(request) : in_.Bytes(100);
    Say(agent, Encode(ToRoot(ClientData{agent.last_client, bytes})));
  }

  void Signal() {
    constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1, SIGTSTP, SIGCONT};
    if (in_.Rarely()) return control_.ours.Reset();
    const char message = static_cast<char>(kSignals[in_.Below(5)]);
    if (control_.ours) (void)!::send(control_.ours.get(), &message, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  plan::Plan PlanFor(const std::vector<Membership::Present>& present) const {
    plan::Plan plan;
    plan.job = "job";
    plan.launcher = together_ ? "mpirun" : "per-process";
    plan.pmi = kind_;
    for (std::size_t i = 0; i < present.size(); ++i) {
      plan.hosts.push_back(
          {cluster_.hosts[static_cast<std::size_t>(present[i].offer.number)], 2 * static_cast<int>(i), 2});
      for (plan::Process& process : fuzz::ProcessesOf(static_cast<int>(i), together_))
        plan.processes.push_back(std::move(process));
    }
    return plan;
  }

  bool FindNetwork(const std::vector<Membership::Present>& present, const plan::Plan& plan) {
    std::vector<NetworkSearch::Member> members;
    std::vector<plan::NetworkRule> rules;
    for (std::size_t i = 0; i < present.size(); ++i) {
      members.push_back({plan.hosts[i].name, present[i].machine, present[i].host});
      rules.push_back({"auto", "job.toml"});
    }
    NetworkSearch search(loop_, signals_, std::move(members));
    const Result<network::Decision> decision = search.Run(rules);
    if (!decision) return false;
    (void)network::NetworksOf(*decision);
    (void)(network::Summary(*decision) + network::OthersText(*decision) + network::Table(*decision) +
           network::ToJson(*decision));
    return true;
  }

  bool RunGeneration(std::uint64_t generation) {
    const Result<std::vector<Membership::Present>> present = membership_->Gather();
    if (!present) return false;
    const plan::Plan plan = PlanFor(*present);
    std::vector<Host*> hosts;
    std::vector<RemoteHost*> remote;
    for (const Membership::Present& one : *present) {
      hosts.push_back(one.host);
      remote.push_back(one.host);
    }
    if (hosts.size() > 1 && in_.Coin() && !FindNetwork(*present, plan)) return false;
    if (in_.Coin() && !RunPreflight(remote)) return false;

    Controller controller(
        loop_, signals_, plan, hosts, [](const std::string&) {}, log_);
    membership_->OnNewcomer([&](const std::string& host) { controller.Regroup(host); });
    controller.OnAsked(
        [&](std::size_t host, int signal) { return membership_->Release(*remote[host], signal); });
    const bool ran = RunPlan(controller, plan, remote, generation);
    membership_->OnNewcomer({});
    return ran;
  }

  bool RunPlan(Controller& controller, const plan::Plan& plan, const std::vector<RemoteHost*>& remote,
               std::uint64_t generation) {
    Result<std::vector<Prepared>> prepared = controller.Prepare(generation, kKey);
    if (!prepared) return controller.interrupted() == 0;
    auto rendezvous = Rendezvous::Open(loop_, plan, remote, *std::move(prepared));
    if (!rendezvous) return false;
    World world;
    world.tokens = rendezvous->TokensFor({});
    world.rendezvous_ports = rendezvous->Ports();
    for (std::size_t i = 0; i < 2 * plan.hosts.size(); ++i) {
      const bool speaks = together_ || i % 2 == 0 || plan.processes.size() > plan.hosts.size();
      world.outputs.push_back(speaks ? std::make_unique<dtrun::process::testing::MemoryOutput>() : nullptr);
    }
    if (!controller.Run(std::move(world))) return controller.interrupted() == 0;
    const Facts* const facts = &log_.facts();
    (void)ExitCode(*facts);
    (void)(VerdictText(*facts) + VerdictJson({*facts}));
    return controller.interrupted() == 0;
  }

  bool RunPreflight(const std::vector<RemoteHost*>& remote) {
    HostPreflight preflight(loop_, signals_);
    return preflight.Run(std::vector<preflight::Request>(remote.size()), remote).ok();
  }

  Source in_;
  const int hosts_;
  const bool together_;  // both ranks of a host in one process
  pmi::Kind kind_ = pmi::Kind::kNone;
  Cluster cluster_;
  boost::asio::io_context loop_;
  dtrun::process::testing::SocketPair control_;
  Lifeline lifeline_{"/tmp", std::move(control_.theirs)};
  UserSignals signals_{loop_, lifeline_};
  std::set<pid_t> shells_;
  RemoteHost::Services services_;
  std::optional<store::Server> store_;
  std::deque<Agent> agents_;
  dtrun::verdict::EventLog log_;
  std::optional<Membership> membership_;
};

DTRUN_FUZZ_TARGET(root)(const std::uint8_t* data, std::size_t size) {
  Root(data, size).Run();
  return 0;
}

}  // namespace root_fuzz
