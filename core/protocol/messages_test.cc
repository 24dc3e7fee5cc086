#include "core/protocol/messages.h"

#include <gtest/gtest.h>

#include <csignal>
#include <limits>
#include <random>

#include "core/wire/coder.h"

namespace dtrun::protocol {
namespace {

// Fills a message with what the limits beside its fields allow: the smallest, the largest or some value of
// each.
class Filler {
 public:
  static constexpr bool kWrites = false;
  explicit Filler(unsigned seed) : random_(seed) {}

  template <class T, class... Limits>
  void operator()(std::string_view name, T& value, Limits... limits) {
    name_ = name;
    Value(value, limits...);
  }
  void Rest(std::string_view, std::string_view& bytes) { bytes = "rest"; }
  static void Fail(const char* problem) { ADD_FAILURE() << problem; }

 private:
  unsigned Below(unsigned bound) { return static_cast<unsigned>(random_()) % bound; }
  template <class T>
  void Between(T& value, wire::Between<T> bounds) {
    value = Below(3) == 0 ? bounds.least : bounds.most;
  }
  template <class T, class Bound>
  static wire::Between<T> In(wire::Between<Bound> bounds) {
    if constexpr (std::is_arithmetic_v<T> && std::is_arithmetic_v<Bound>) {
      const auto most = std::min<long double>(bounds.most, std::numeric_limits<T>::max());
      return {static_cast<T>(bounds.least), static_cast<T>(most)};
    } else {
      return {static_cast<T>(bounds.least), static_cast<T>(bounds.most)};
    }
  }
  template <wire::Number T, class... Limits>
  void Value(T& value, Limits... limits) {
    value = static_cast<T>(Below(200));
    (
        (void)[&](auto limit) {
          if constexpr (requires { limit.least; }) Between(value, In<T>(limit));
        }(limits),
        ...);
  }
  template <class... Limits>
  void Value(bool& value, Limits...) {
    value = Below(2) == 1;
  }
  template <class... Limits>
  void Value(std::string& text, Limits...) {
    text = name_ == "ip" ? "fd00::5" : std::string(Below(9), 'x');
  }
  template <class... Limits>
  void Value(std::chrono::nanoseconds& time, Limits... limits) {
    std::int64_t count = 0;
    Value(count, limits...);
    time = std::chrono::nanoseconds(count);
  }
  template <class T, class... Limits>
  void Value(std::vector<T>& list, wire::Most, Limits... limits) {
    list.resize(Below(3));
    for (T& one : list) Value(one, limits...);
  }
  template <class... Limits>
  void Value(std::map<std::string, std::string>& map, wire::Most, Limits...) {
    map = {{"a", "1"}, {"b", ""}};
  }
  template <class... Limits>
  void Value(ProcessVariables& map, wire::Most, Limits...) {
    map = {{"A", "1"}};
  }
  template <class A, class B, class... Limits>
  void Value(std::pair<A, B>& pair, Limits... limits) {
    Value(pair.first, limits...);
    Value(pair.second, limits...);
  }
  template <class T, class... Limits>
  void Value(std::optional<T>& maybe, Limits... limits) {
    maybe.reset();
    if (Below(2) == 1) Value(maybe.emplace(), limits...);
  }
  template <class T>
  requires std::is_class_v<T>
  void Value(T& value) { wire::FieldsOf(*this, value); }

  std::minstd_rand random_;
  std::string_view name_;
};

// Of each kind: what the limits allow is carried whole.
template <class Message, std::size_t... kKinds>
void CarryAllowed(Result<Message> (*decode)(std::string_view), std::index_sequence<kKinds...>) {
  const auto carry = [&]<class T>(T message) {
    for (unsigned seed = 1; seed <= 50; ++seed) {
      Filler fill(seed);
      wire::FieldsOf(fill, message);
      const std::string bytes = Encode(Message(message));
      const Result<Message> got = decode(bytes);
      ASSERT_TRUE(got) << T::kRule.name << ": " << got.error().text;
      EXPECT_EQ(Encode(*got), bytes) << T::kRule.name;
    }
  };
  (carry(std::variant_alternative_t<kKinds, Message>()), ...);
}

TEST(Messages, OfEveryKindCarryWhatTheirLimitsAllow) {
  CarryAllowed<ToAgent>(DecodeToAgent, std::make_index_sequence<std::variant_size_v<ToAgent>>());
  CarryAllowed<ToRoot>(DecodeToRoot, std::make_index_sequence<std::variant_size_v<ToRoot>>());
}

template <class T>
T ThroughAgent(const T& message) {
  static std::string bytes;  // views point into it
  bytes = Encode(ToAgent(message));
  return std::get<T>(std::move(DecodeToAgent(bytes)).value());
}

template <class T>
T ThroughRoot(const T& message) {
  static std::string bytes;
  bytes = Encode(ToRoot(message));
  return std::get<T>(std::move(DecodeToRoot(bytes)).value());
}

TEST(Messages, CarryAWholePartOfAPlan) {
  Prepare prepare;
  prepare.generation = 7;
  prepare.world_size = 5;
  prepare.job_key = "secret";
  prepare.master_port = 0;
  prepare.grace = std::chrono::milliseconds(1500);
  prepare.memory = std::uint64_t{1} << 40;
  prepare.environment = {"A=1", "B="};
  plan::Process process;
  process.host = 1;
  process.rank = 3;
  process.local_rank = 1;
  process.rank_count = 2;
  process.argv = {"/bin/x", "", "ü"};
  process.env = {{"RANK", "3"}, {"Z", "⟦store⟧"}};
  process.cwd = "/";
  process.binding = "0-1";
  prepare.processes = {process, process};
  const Prepare got = ThroughAgent(prepare);
  EXPECT_EQ(got.generation, 7u);
  EXPECT_EQ(got.world_size, 5);
  EXPECT_EQ(got.job_key, "secret");
  EXPECT_EQ(got.master_port, 0);
  EXPECT_EQ(got.grace, prepare.grace);
  EXPECT_EQ(got.memory, prepare.memory);
  EXPECT_EQ(got.environment, prepare.environment);
  ASSERT_EQ(got.processes.size(), 2u);
  EXPECT_EQ(got.processes[1].rank, 3);
  EXPECT_EQ(got.processes[1].rank_count, 2);
  EXPECT_EQ(got.processes[1].argv, process.argv);
  EXPECT_EQ(got.processes[1].env, process.env);
  EXPECT_EQ(got.processes[1].binding, "0-1");
}

TEST(Messages, CarryWhatRanksCall) {
  contract::Window window;
  window.communicator = 0xfeedULL << 48;
  window.name = "world.0:1";
  window.device = "npu";
  window.size = 4;
  window.members = {{2, 0}, {3, 1}};
  window.idle = contract::Idle{9, 8};
  sdk::Signature call;
  call.kind = 3;
  call.device_kind = DTRUN_DEVICE_OTHER;
  call.root = -1;
  call.count = 1ULL << 40;
  window.calls = {{9, 77, call}};
  window.messages = {{1ULL << 40, 3ULL << 24 | 5, 2}};
  contract::Window steady;
  steady.checkpoints = {{64, 5}, {128, 6}};
  const Called got = ThroughRoot(Called{{window, steady}});
  ASSERT_EQ(got.windows.size(), 2u);
  EXPECT_EQ(got.windows[0].communicator, window.communicator);
  EXPECT_EQ(got.windows[0].name, "world.0:1");
  EXPECT_EQ(got.windows[0].device, "npu");
  ASSERT_EQ(got.windows[0].members.size(), 2u);
  EXPECT_EQ(got.windows[0].members[1].world_rank, 3);
  EXPECT_EQ(got.windows[0].members[1].rank, 1);
  EXPECT_EQ(got.windows[0].idle, window.idle);
  ASSERT_EQ(got.windows[0].calls.size(), 1u);
  EXPECT_EQ(got.windows[0].calls[0].chain, 77u);
  EXPECT_EQ(got.windows[0].messages, window.messages);
  EXPECT_EQ(got.windows[0].calls[0].call, call);
  EXPECT_FALSE(got.windows[1].idle);
  EXPECT_EQ(got.windows[1].checkpoints, steady.checkpoints);
  EXPECT_EQ(ThroughAgent(Called{{window}}).windows.size(), 1u);
}

TEST(Messages, CarryWhatRanksDo) {
  EXPECT_EQ(ThroughAgent(Inspect{7}).number, 7u);
  EXPECT_EQ(ThroughAgent(Inspect{7, {3, 1}}).closely, (std::vector<int>{3, 1}));
  verdict::RankDoing doing;
  doing.rank = 3;
  doing.stand = stacks::Stand::kElsewhere;
  doing.phrase = "in time.sleep at train.py:40";
  doing.text = "process 4711\n";
  doing.processor_ms = 1LL << 40;
  doing.bytes = 5;
  doing.beside = "a lock that rank 2 holds";
  doing.waits_for = 2;
  doing.joins = true;
  doing.may_handle = false;
  doing.overrides = {{3, "MASTER_PORT", "29500", "12355"}};
  const Inspected got = ThroughRoot(Inspected{7, {doing, doing}, 99});
  EXPECT_EQ(got.number, 7u);
  EXPECT_EQ(got.calls, 99u);
  ASSERT_EQ(got.ranks.size(), 2u);
  EXPECT_EQ(got.ranks[1].rank, 3);
  EXPECT_EQ(got.ranks[1].stand, stacks::Stand::kElsewhere);
  EXPECT_EQ(got.ranks[1].phrase, doing.phrase);
  EXPECT_FALSE(got.ranks[1].may_handle);
  EXPECT_EQ(got.ranks[1].text, doing.text);
  EXPECT_EQ(got.ranks[1].processor_ms, doing.processor_ms);
  EXPECT_EQ(got.ranks[1].bytes, 5);
  EXPECT_EQ(got.ranks[1].Said(), "in time.sleep at train.py:40 (a lock that rank 2 holds)");
  EXPECT_EQ(got.ranks[1].waits_for, 2);
  EXPECT_TRUE(got.ranks[1].joins);
  ASSERT_EQ(got.ranks[1].overrides.size(), 1u);
  EXPECT_EQ(got.ranks[1].overrides[0].now, "12355");
}

TEST(Messages, CarryADifference) {
  const Differed got = ThroughAgent(Differed{{7, 1, 5, "call 3 differs", true, true}});
  EXPECT_EQ(got.difference.communicator, 7u);
  EXPECT_EQ(got.difference.first, 1);
  EXPECT_EQ(got.difference.second, 5);
  EXPECT_EQ(got.difference.text, "call 3 differs");
  EXPECT_TRUE(got.difference.exact);
  EXPECT_TRUE(got.difference.between_hosts);
}

TEST(Messages, CarryBytesAsTheyAre) {
  const std::string bytes("a\0\xff", 3);
  const Output output = ThroughRoot(Output{4, output::Stream::kErr, bytes});
  EXPECT_EQ(output.rank, 4);
  EXPECT_EQ(output.stream, output::Stream::kErr);
  EXPECT_EQ(output.bytes, bytes);
  EXPECT_TRUE(ThroughRoot(Output{4, output::Stream::kOut, {}}).bytes.empty());
  EXPECT_EQ(ThroughAgent(ClientData{9, bytes}).bytes, bytes);
}

TEST(Messages, CarryEventsAndCommands) {
  const Ended ended = ThroughRoot(Ended{2, {0, SIGKILL, true, true}, SIGTERM, {"backend 'x'", true}});
  EXPECT_EQ(ended.under_way.members, "backend 'x'");
  EXPECT_TRUE(ended.under_way.main_thread);
  EXPECT_EQ(ended.ending.signal, SIGKILL);
  EXPECT_TRUE(ended.ending.core_dumped && ended.ending.out_of_memory);
  EXPECT_EQ(ended.signal_sent, SIGTERM);
  EXPECT_EQ(ThroughRoot(Refused{{DTRUN_NOT_FOUND, "no such file"}}).error.text, "no such file");
  EXPECT_EQ(ThroughRoot(Started{{1, 2}}).pids, (std::vector<pid_t>{1, 2}));
  const Introduction host = ThroughRoot(
      Introduction{"node1", "boot", "0.0=0,1", {binding::Vendor::kAmd, {{"GPU-1", 1, "0"}, {"", -1, "1"}}}});
  EXPECT_EQ(host.processors, "0.0=0,1");
  EXPECT_EQ(host.gpus.vendor, binding::Vendor::kAmd);
  ASSERT_EQ(host.gpus.devices.size(), 2u);
  EXPECT_EQ(host.gpus.devices[0].uuid, "GPU-1");
  EXPECT_EQ(host.gpus.devices[1].numa, -1);
  EXPECT_EQ(host.gpus.devices[1].name, "1");
  const Start start = ThroughAgent(Start{{{"⟦store⟧", "/x"}}, {29500}});
  EXPECT_EQ(start.tokens.at("⟦store⟧"), "/x");
  EXPECT_EQ(start.rendezvous_ports, std::vector<std::uint16_t>{29500});
  const RankEnded rank = ThroughRoot(RankEnded{5, 4242, {7, 0}});
  EXPECT_EQ(rank.rank, 5);
  EXPECT_EQ(rank.pid, 4242);
  EXPECT_EQ(rank.ending.code, 7);
  const RendezvousSeen looked =
      ThroughRoot(RendezvousSeen{false, {"PyTorch"}, true, true, {{3, "RANK", "3", "0"}}});
  ASSERT_EQ(looked.overrides.size(), 1u);
  EXPECT_EQ(looked.overrides[0].rank, 3);
  EXPECT_EQ(looked.overrides[0].name + looked.overrides[0].given + looked.overrides[0].now, "RANK30");
  EXPECT_FALSE(looked.joined);
  EXPECT_EQ(looked.frameworks, std::vector<std::string>{"PyTorch"});
  EXPECT_TRUE(looked.late);
  EXPECT_EQ(ThroughAgent(Stop{SIGTERM}).signal, SIGTERM);
  EXPECT_EQ(ThroughAgent(Over{3, "port 1 is in use"}).exit_code, 3);
  EXPECT_EQ(ThroughAgent(Over{3, "port 1 is in use"}).why, "port 1 is in use");
  preflight::Request request;
  request.program = "train.py";
  const RunPreflight run = ThroughAgent(RunPreflight{request, {"A=b"}});
  EXPECT_EQ(run.request.program, "train.py");
  EXPECT_EQ(run.environment, std::vector<std::string>{"A=b"});
  EXPECT_EQ(ThroughRoot(PreflightAnswered{{{}, {}, "torch"}}).answer.missing_modules, "torch");
  ThroughAgent(Kill{});
}

TEST(Messages, CarryWhatMpiLibrariesNeed) {
  Prepare prepare;
  prepare.world_size = 3;
  prepare.mpi = {pmi::Kind::kPmix, "job-1.0", {{"node0", 0, 2}, {"node1", 2, 1}}, 1};
  const pmi::Job job = ThroughAgent(prepare).mpi;
  EXPECT_EQ(job.kind, pmi::Kind::kPmix);
  EXPECT_EQ(job.name, "job-1.0");
  ASSERT_EQ(job.hosts.size(), 2u);
  EXPECT_EQ(job.hosts[1].name, "node1");
  EXPECT_EQ(job.hosts[1].first_rank, 2);
  EXPECT_EQ(job.here, 1);

  const std::string bytes("a\0\xff", 3);
  const pmi::Part part = ThroughRoot(Offered{{"fence/1", {0, 2}, bytes}}).part;
  EXPECT_EQ(part.exchange, "fence/1");
  EXPECT_EQ(part.hosts, (std::vector<int>{0, 2}));
  EXPECT_EQ(part.bytes, bytes);
  EXPECT_EQ(ThroughAgent(Exchanged{"fence/1", "", bytes}).bytes, bytes);
  EXPECT_EQ(ThroughAgent(Exchanged{"fence/1", "the job is ending", ""}).error, "the job is ending");
  EXPECT_EQ(ThroughRoot(MpiStarted{3}).rank, 3);
  EXPECT_EQ(ThroughRoot(MpiFinished{3}).rank, 3);
  EXPECT_EQ(ThroughRoot(MpiAborted{3, 7, "enough"}).message, "enough");
  EXPECT_TRUE(ThroughRoot(MpiAborted{3, 1, "twice", true}).broke);
  EXPECT_EQ(ThroughRoot(MpiServerLost{"died"}).how, "died");
}

TEST(Messages, CarryTheConnectivityCheck) {
  network::Candidate candidate;
  candidate.interface = "eth0";
  candidate.index = 2;
  candidate.kind = network::Kind::kBond;
  candidate.address = {asio::ip::make_address("fd00::5"), 64};
  candidate.first_address = false;
  candidate.of_ssh = true;
  candidate.default_route = true;
  candidate.mtu = 9000;
  candidate.speed_mbps = 100'000;
  candidate.rdma = "mlx5_0:1";
  candidate.port = 65535;
  const CheckConnectivity check =
      ThroughAgent(CheckConnectivity{{{7, {candidate}}}, false, std::chrono::seconds(2)});
  ASSERT_EQ(check.peers.size(), 1u);
  EXPECT_EQ(check.peers[0].host, 7);
  EXPECT_FALSE(check.by_device);
  EXPECT_EQ(check.limit, std::chrono::seconds(2));
  const network::Candidate& got = check.peers[0].candidates.at(0);
  EXPECT_EQ(got.Text(), "eth0 fd00::5");
  EXPECT_EQ(got.kind, network::Kind::kBond);
  EXPECT_EQ(got.address.prefix, 64);
  EXPECT_FALSE(got.first_address);
  EXPECT_TRUE(got.of_ssh);
  EXPECT_TRUE(got.default_route);
  EXPECT_EQ(got.speed_mbps, 100'000);
  EXPECT_EQ(got.rdma, "mlx5_0:1");
  EXPECT_EQ(got.port, 65535);

  const Surveyed surveyed = ThroughRoot(Surveyed{
      {{candidate}, {{"lo", network::Kind::kLoopback, "127.0.0.1/8", "is loopback"}}, {"ens3"}, true}});
  EXPECT_EQ(surveyed.offer.candidates.size(), 1u);
  EXPECT_EQ(surveyed.offer.left_out.at(0).why, "is loopback");
  EXPECT_EQ(surveyed.offer.unmatched, std::vector<std::string>{"ens3"});
  EXPECT_TRUE(surveyed.offer.has_rdma);
  const ConnectivityChecked connected =
      ThroughRoot(ConnectivityChecked{{{1, 2, 3, "no answer", std::chrono::microseconds(4), "eth9"}}});
  EXPECT_EQ(connected.attempts.at(0).why, "no answer");
  EXPECT_EQ(connected.attempts.at(0).to, 3);
  EXPECT_EQ(connected.attempts.at(0).leaves_by, "eth9");
  EXPECT_EQ(ThroughRoot(Lost{"its remote shell has ended", true}).why, "its remote shell has ended");
  EXPECT_EQ(ThroughRoot(Measured{{1e9, std::chrono::microseconds(4)}}).throughput.bits_per_s, 1e9);
  EXPECT_EQ(ThroughRoot(Measured{{1e9, {}, 0.25}}).throughput.loss, 0.25);
  EXPECT_EQ(ThroughAgent(Measure{1, 2, candidate, true}).to.interface, "eth0");
  EXPECT_EQ(ThroughAgent(Measure{1, 2, candidate, true, 5e8}).pace, 5e8);
  EXPECT_EQ(ThroughAgent(Survey{3, "auto", "key"}).rule, "auto");
}

TEST(Messages, RefuseAnAddressThatIsNone) {
  std::string bytes = Encode(ToAgent(Measure{1, 2, {}, true, 0}));
  const auto at = bytes.find("0.0.0.0");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'x';
  EXPECT_FALSE(DecodeToAgent(bytes));
}

TEST(Messages, RefuseWhatTheyDoNotKnow) {
  EXPECT_FALSE(DecodeToAgent(""));
  EXPECT_FALSE(DecodeToAgent("\x7f"));
  EXPECT_FALSE(DecodeToRoot(std::string("\x05\x01", 2)));
  EXPECT_FALSE(DecodeToAgent(Encode(ToAgent(Stop{SIGTERM})) + "x"));
}

}  // namespace
}  // namespace dtrun::protocol
