// Several clients of one store, with the key and without, that ask, wait, leave and break off in any order:
// each answer is one to a request of that client, and nothing is kept of those who have left.
#include <sys/socket.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <set>

#include "core/base/fd.h"
#include "core/store/protocol.h"
#include "core/store/server.h"
#include "tests/fuzz/source.h"
#include "tests/fuzz/target.h"

namespace store_states_fuzz {

using namespace dtrun;
using dtrun::fuzz::Source;

const std::string kKey(64, '0');

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

struct Client {
  UniqueFd socket;
  wire::FrameReader replies{store::kMaxFrameBytes};
  std::set<std::uint32_t> asked;  // ids without an answer
  bool cut = false;               // it has sent part of a frame, or nonsense
};

class Store {
 public:
  Store(const std::uint8_t* data, std::size_t size) : in_(data, size), server_(kKey, 3, Events()) {}

  void Run() {
    for (int steps = 0; !in_.empty() && steps < 200; ++steps) {
      Act();
      loop_.restart();
      loop_.poll();
      for (Client& client : clients_) Hear(client);
    }
  }

 private:
  static store::Events Events() {
    return {[](int) {}, [](int) {}, [](int, const store::Report&) {}, [](int, const store::Metrics&) {}};
  }

  void Act() {
    const std::uint8_t what = in_.Byte() % 16;
    if (clients_.empty() || (what == 0 && clients_.size() < 6)) return Come();
    Client& client = clients_[in_.Below(clients_.size())];
    if (what == 1) return client.socket.Reset();
    if (what == 2) {
      client.cut = true;
      return Send(client, in_.Bytes(64));
    }
    const store::Request request = ARequest();
    client.asked.insert(request.id);
    std::string frame = Encode(request);
    if (what == 3 && !frame.empty()) {
      client.cut = true;
      frame[in_.Byte() % frame.size()] = static_cast<char>(in_.Byte());
    }
    if (what == 4) {
      client.cut = true;
      frame.resize(in_.Byte() % frame.size());
    }
    Send(client, frame);
  }

  void Come() {
    int ends[2];
    Require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
            "no socket pair");
    store::Socket theirs(loop_);
    theirs.assign(boost::asio::local::stream_protocol(), ends[0]);
    server_.Serve(std::move(theirs));
    Client& client = clients_.emplace_back();
    client.socket = UniqueFd(ends[1]);
    if (in_.Rarely()) return;
    const store::Request hello{1, store::Hello{store::kProtocolVersion, kKey, 3, in_.Index(4), in_.Coin()}};
    client.asked.insert(1);
    Send(client, Encode(hello));
  }

  store::Request ARequest() {
    store::Request request;
    request.id = 2 + in_.Byte() % 8;
    const std::string key(1, static_cast<char>('a' + in_.Below(4)));
    const std::int64_t timeout = in_.Coin() ? -1 : in_.Number();
    switch (in_.Below(12)) {
      case 0:
        request.body = store::Hello{static_cast<std::uint32_t>(in_.Below(3)),
                                    in_.Coin() ? kKey : in_.Bytes(64), in_.Below(5), in_.Int(), in_.Coin()};
        break;
      case 1: request.body = store::Set{key, in_.Bytes(200)}; break;
      case 2: request.body = store::Get{key, timeout}; break;
      case 3: request.body = store::TryGet{key}; break;
      case 4: request.body = store::Add{key, in_.Number()}; break;
      case 5: request.body = store::CompareSet{key, in_.Coin(), in_.Bytes(4), in_.Bytes(4)}; break;
      case 6: request.body = store::Erase{key}; break;
      case 7: {
        store::WaitMany wait{{}, timeout};
        for (std::size_t i = in_.Count(); i > 0; --i)
          wait.keys.emplace_back(1, static_cast<char>('a' + in_.Below(4)));
        request.body = std::move(wait);
        break;
      }
      case 8: request.body = store::Goodbye{}; break;
      case 9: request.body = store::Fail{in_.Coin() ? key : "", in_.Bytes(100)}; break;
      case 10:
        request.body =
            store::Metrics{{{in_.Coin() ? "loss" : in_.Bytes(8), 1.5, in_.Number(), {}}}, {}, in_.Number()};
        break;
      default: request.body = store::Report{{in_.Int(), in_.Bytes(100), in_.Int()}, {in_.Int()}};
    }
    return request;
  }

  static void Send(Client& client, const std::string& bytes) {
    if (client.socket)
      (void)!::send(client.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  static void Hear(Client& client) {
    if (!client.socket) return;
    char bytes[4096];
    for (ssize_t size = 0; (size = ::recv(client.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
      client.replies.Append({bytes, static_cast<std::size_t>(size)});
    for (;;) {
      const auto frame = client.replies.Next();
      Require(frame.ok(), "the store sent a frame that is none");
      if (!frame->has_value()) return;
      const auto reply = store::DecodeReply(**frame);
      Require(reply.ok(), "the store sent a reply that does not decode");
      Require(client.cut || client.asked.erase(reply->id) == 1, "the store answered without a request");
    }
  }

  Source in_;
  boost::asio::io_context loop_;
  store::Server server_;
  std::deque<Client> clients_;
};

DTRUN_FUZZ_TARGET(store_states)(const std::uint8_t* data, std::size_t size) {
  Store(data, size).Run();
  return 0;
}

}  // namespace store_states_fuzz
