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

#include "core/node/serve.h"
#include "core/process/process.h"
#include "core/process/testing.h"
#include "tests/fuzz/agent_commands.h"
#include "tests/fuzz/target.h"

namespace agent_fuzz {

using namespace dtrun;
using namespace dtrun::process;
using namespace dtrun::verdict;
using namespace dtrun::protocol;
using namespace dtrun::node;
using dtrun::fuzz::Source;

constexpr int kHosts = 3;
constexpr int kHost = 1;  // the agent's

void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

// The root at the other end.
struct Root {
  protocol::Channel::Handlers agent;
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

class Link final : public protocol::Channel {
 public:
  explicit Link(Root& root) : root_(root) {}
  ~Link() override { root_.agent = {}; }
  void Start(Handlers handlers) override { root_.agent = std::move(handlers); }
  void Send(std::string_view message) override { root_.Hear(message); }
  std::size_t queued_bytes() const override { return 0; }
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
      case 0: Connect(); return true;
      case 1: return SendBytes();
      case 2:
      case 3:
      case 4: Wait(); return true;
      default: return Send(fuzz::ACommand(in_, kHost, kHosts));
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

  // A rank that connects to the store.
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

DTRUN_FUZZ_TARGET(agent)(const std::uint8_t* data, std::size_t size) {
  static const bool ready = (BecomeSubreaper(), ::signal(SIGPIPE, SIG_IGN) != SIG_ERR);
  if (!ready) return 0;
  static const process::testing::ScratchDir folder;
  Job(data, size, folder.path()).Run();
  return 0;
}

}  // namespace agent_fuzz
