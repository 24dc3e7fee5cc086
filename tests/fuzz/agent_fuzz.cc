// A root that knows the key and says anything to an agent, which has this host carry it out for real: ranks
// are /bin/true, networks are this machine. The agent may refuse and leave; it does not crash, it ends when
// it is told to, and until it was told nonsense all that it says keeps to the protocol.
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "core/agent/agent_link.h"
#include "core/agent/process.h"
#include "core/agent/testing.h"
#include "core/net/greeting.h"
#include "tests/fuzz/agent_messages.h"

namespace {

using namespace dtrun;
using namespace dtrun::agent;
using dtrun::fuzz::Source;

constexpr int kHosts = 3;
constexpr int kHost = 1;  // the agent's

void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

// The root at the other end.
struct Root {
  control::Channel::Handlers agent;
  Protocol said;
  std::string store;  // the socket of the ranks
  bool lost = false;  // the agent has said why it leaves: what follows is not heard

  void Hear(std::string_view bytes) {
    if (lost) return;
    const auto message = DecodeToRoot(bytes);
    if (!message) Fail("the agent said what does not decode: " + message.error().text);
    const auto valid = said.Check(*message);
    if (!valid) Fail("the agent broke the protocol: " + valid.error().text);
    lost = std::holds_alternative<Lost>(*message);
    if (const auto* prepared = std::get_if<Prepared>(&*message)) store = prepared->store;
  }
  void Say(const ToAgent& message) {
    said.Note(message);
    SayBytes(Encode(message));
  }
  void SayBytes(const std::string& bytes) {
    if (const auto on_message = agent.on_message) on_message(bytes);
  }
};

class Link final : public control::Channel {
 public:
  explicit Link(Root& root) : root_(root) {}
  ~Link() override { root_.agent = {}; }
  void Start(Handlers handlers) override { root_.agent = std::move(handlers); }
  void Send(std::string_view message) override { root_.Hear(message); }
  std::size_t queued_bytes() const override { return 0; }
  void Pause() override {}
  void Resume() override {}
  void Close(std::function<void()> done) override {
    if (done) done();
  }
  const std::string& peer() const override { return peer_; }

 private:
  Root& root_;
  const std::string peer_ = "127.0.0.1:5555";
};

class Job {
 public:
  Job(const std::uint8_t* data, std::size_t size, const std::filesystem::path& folder)
      : in_(data, size), link_(loop_, OptionsIn(folder)) {}

  void Run() {
    link_.Join(std::make_unique<Link>(root_));
    for (int steps = 0; !in_.empty() && steps < 64 && !link_.code(); ++steps) {
      if (!Act()) break;
      Turn();
    }
    link_.Leave("the input is over");
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!link_.code()) {
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(100));
      if (std::chrono::steady_clock::now() > deadline) Fail("the agent does not end");
    }
  }

 private:
  static LocalOptions OptionsIn(const std::filesystem::path& folder) {
    LocalOptions options;
    options.socket_dir = folder;
    return options;
  }

  void Turn() {
    loop_.restart();
    loop_.poll();
  }

  // Until nothing is due any more, or for a moment.
  void Wait() {
    for (int i = 0; i < 20 && !link_.code(); ++i) {
      loop_.restart();
      if (loop_.run_one_for(std::chrono::milliseconds(5)) == 0) return;
    }
  }

  // False once the root has broken the protocol: what the agent says then is its last words.
  bool Act() {
    switch (in_.Byte() % 16) {
      case 0: return Send(APrepare());
      case 1:
        return Send(Start{{}, in_.Rarely() ? std::vector<std::uint16_t>{1} : std::vector<std::uint16_t>{}});
      case 2: return Send(agent::Signal{in_.Coin() ? SIGUSR1 : in_.Int()});
      case 3: return Send(Stop{in_.Coin() ? SIGTERM : in_.Int()});
      case 4: return Send(Kill{});
      case 5: return Send(Exchanged{in_.Name(), in_.Name(), in_.Bytes(16)});
      case 6: return Send(Survey{in_.Index(3), in_.Coin() ? "auto" : in_.Name(), std::string(32, 'k')});
      case 7: return Send(AProof());
      case 8: return Send(Measure{in_.Index(2), in_.Index(3), Here(), false});
      case 9: return Send(fuzz::SomeCalls(in_, 2 * static_cast<int>(in_.Below(kHosts)), 2 * kHosts));
      case 10: return Send(Differed{{in_.Byte(), in_.Index(6), in_.Index(6), in_.Name(), true, in_.Coin()}});
      case 11:
        return Send(in_.Coin() ? ToAgent(ClientData{1, "x"})
                               : ToAgent(ClientClosed{static_cast<std::uint32_t>(in_.Int())}));
      case 12: Connect(); return true;
      case 13: return Send(agent::Examine{"no question", {}});
      case 14: return in_.Rarely() ? Send(Over{0, in_.Name()}) : SendBytes();
      default: Wait(); return true;
    }
  }

  bool Send(const ToAgent& message) {
    const bool valid = Protocol(root_.said).Check(message).ok();
    if (valid) {
      root_.Say(message);
    } else {
      root_.SayBytes(Encode(message));
    }
    return valid;
  }

  // What is no message that has processes or networks: those only as made above.
  bool SendBytes() {
    const std::string bytes = in_.Bytes(255);
    const auto message = DecodeToAgent(bytes);
    if (!message) root_.SayBytes(bytes);
    return message.ok();
  }

  Prepare APrepare() {
    Prepare prepare;
    prepare.world_size = in_.Rarely() ? in_.Int() : 2 * kHosts;
    prepare.master_port = in_.Rarely() ? in_.Int() : -static_cast<int>(in_.Below(2));
    prepare.processes = fuzz::ProcessesOf(kHost, in_.Coin());
    if (in_.Rarely()) prepare.processes[0].rank = in_.Int();
    if (in_.Rarely()) prepare.processes[0].rank_count = in_.Int();
    if (in_.Coin()) prepare.task_ranks = {in_.Rarely() ? in_.Int() : 2};
    prepare.grace = std::chrono::nanoseconds(in_.Rarely() ? in_.Number() : 1'000'000);
    if (in_.Coin()) {
      prepare.mpi = {in_.Rarely() ? pmi::Kind::kNone : pmi::Kind::kPmi1,
                     "job-0.0",
                     {},
                     in_.Rarely() ? in_.Int() : kHost};
      for (int i = 0; i < kHosts; ++i)
        prepare.mpi.hosts.push_back({"node", in_.Rarely() ? in_.Int() : 2 * i, in_.Rarely() ? in_.Int() : 2});
    }
    return prepare;
  }

  static net::Candidate Here() {
    net::Candidate here;
    here.interface = "lo";
    here.address = {net::asio::ip::make_address("127.0.0.1"), 8};
    here.port = 1;
    return here;
  }

  Prove AProof() {
    Prove prove;
    for (std::size_t i = in_.Below(3); i > 0; --i)
      prove.peers.push_back({in_.Rarely() ? in_.Int() : 2 * static_cast<int>(i - 1), {Here()}});
    prove.by_device = false;
    prove.limit = std::chrono::milliseconds(1);
    return prove;
  }

  // A rank that comes to the store.
  void Connect() {
    if (root_.store.empty()) return;
    UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    root_.store.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
    (void)!::send(client.get(), "bytes", 5, MSG_NOSIGNAL);
    if (in_.Coin()) clients_.push_back(std::move(client));
  }

  Source in_;
  Root root_;
  boost::asio::io_context loop_;
  AgentLink link_;
  std::vector<UniqueFd> clients_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool ready = (BecomeSubreaper(), ::signal(SIGPIPE, SIG_IGN) != SIG_ERR);
  if (!ready) return 0;
  static const agent::testing::ScratchDir folder;
  Job(data, size, folder.path()).Run();
  return 0;
}
