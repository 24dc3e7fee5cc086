// One connection of a store server: reads requests, answers them, and parks blocking ones.
//
// Lives on the server's event loop. Its pending operations and the session list keep it alive until Close.
// One thread.
#pragma once

// Before Asio, because Boost 1.74 uses std::exchange without including it.
// clang-format off
#include <utility>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
// clang-format on

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/store/protocol.h"
#include "core/store/server.h"
#include "core/store/table.h"

namespace dtrun::store {

class Session;

// State shared by the sessions of one server. Outlives the server until all sessions have closed.
struct Shared {
  std::string job_key;
  std::uint64_t generation = 0;
  Events events;
  Table table;
  std::set<std::shared_ptr<Session>> sessions;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Socket socket, std::shared_ptr<Shared> shared);
  void Start();
  // Drops the connection, its waits and all unsent replies. Idempotent.
  void Close();

 private:
  struct Wait {
    std::uint64_t id = 0;  // id in the table
    std::unique_ptr<boost::asio::steady_timer> timer;
  };

  void ExpectHello();
  void Read();
  void HandleBytes(std::size_t size);
  void Send(const Reply& reply);
  void Write();

  // False: the client violated the protocol.
  bool Handle(Request request);
  bool SayHello(std::uint32_t id, const Hello& hello);
  void Refuse(std::uint32_t id, std::string text);
  // `answer` fills the reply of a successful wait.
  bool Await(std::uint32_t id, std::vector<std::string> keys, std::int64_t timeout_ns,
             std::function<void(Reply&)> answer);
  void TimeOut(std::uint32_t id, const std::vector<std::string>& keys, std::int64_t timeout_ns);

  bool On(std::uint32_t id, Hello& hello);
  bool On(std::uint32_t id, Set& set);
  bool On(std::uint32_t id, Get& get);
  bool On(std::uint32_t id, TryGet& get);
  bool On(std::uint32_t id, Add& add);
  bool On(std::uint32_t id, CompareSet& swap);
  bool On(std::uint32_t id, Erase& erase);
  bool On(std::uint32_t id, WaitMany& wait);
  bool On(std::uint32_t id, Goodbye& goodbye);
  bool On(std::uint32_t id, Report& report);
  bool On(std::uint32_t id, Fail& fail);

  std::string Full(std::string_view key) const;
  std::string_view Short(std::string_view key) const { return key.substr(prefix_.size()); }

  Socket socket_;
  std::shared_ptr<Shared> shared_;
  boost::asio::steady_timer hello_timer_;
  std::string prefix_;  // of this generation
  std::array<char, 65536> chunk_;
  wire::FrameReader frames_{kMaxHelloBytes};
  std::deque<std::string> replies_;
  std::size_t reply_bytes_ = 0;
  std::map<std::uint32_t, Wait> waits_;  // by request id
  int rank_ = -1;
  bool said_hello_ = false;
  bool refused_ = false;  // close once the refusal is sent
  bool closed_ = false;
};

}  // namespace dtrun::store
