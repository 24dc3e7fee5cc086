#include "core/store/server.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>
#include <type_traits>

#include "core/base/number.h"
#include "core/base/same_secret.h"
#include "core/base/visit.h"
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

namespace {

constexpr std::chrono::seconds kHelloTime{30};
constexpr std::size_t kMaxWaits = 1024;

}  // namespace

// One connection: reads requests, answers them, and parks blocking ones. Its pending operations and the
// session list keep it alive until Close.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Socket socket, std::shared_ptr<Shared> shared)
      : socket_(std::move(socket)),
        shared_(std::move(shared)),
        hello_timer_(socket_.get_executor()),
        prefix_(fmt::format("g{}/", shared_->generation)) {}

  void Start() {
    shared_->sessions.insert(shared_from_this());
    ExpectHello();
    Read();
  }

  // Drops the connection, its waits and all unsent replies. Idempotent.
  void Close() {
    if (std::exchange(closed_, true)) return;
    const auto self = shared_from_this();
    for (const auto& [id, wait] : waits_) shared_->table.Cancel(wait.id);
    waits_.clear();
    hello_timer_.cancel();
    error_code ignored;  // a failed close still closes
    socket_.close(ignored);
    shared_->sessions.erase(self);
  }

 private:
  struct Wait {
    std::uint64_t id = 0;  // id in the table
    std::unique_ptr<asio::steady_timer> timer;
  };

  void ExpectHello() {
    hello_timer_.expires_after(kHelloTime);
    hello_timer_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && !self->said_hello_) self->Close();
    });
  }

  void Read() {
    socket_.async_read_some(asio::buffer(chunk_),
                            [self = shared_from_this()](const error_code& error, std::size_t size) {
                              if (self->closed_) return;
                              if (error) return self->Close();
                              self->HandleBytes(size);
                            });
  }

  void HandleBytes(std::size_t size) {
    frames_.Append({chunk_.data(), size});
    while (!refused_) {
      Result<std::optional<std::string_view>> frame = frames_.Next();
      if (!frame) return Close();
      if (!frame->has_value()) return Read();
      Result<Request> request = DecodeRequest(**frame);
      if (!request || !Handle(*std::move(request))) return Close();
      if (closed_) return;
    }
  }

  // False: the client violated the protocol.
  bool Handle(Request request) {
    const bool is_hello = std::holds_alternative<Hello>(request.body);
    if (is_hello == said_hello_ || waits_.count(request.id) != 0) return false;
    return Visit(
        [&](auto& body) {
          if constexpr (std::is_void_v<decltype(On(request.id, body))>) {
            On(request.id, body);
            return true;
          } else {
            return On(request.id, body);
          }
        },
        request.body);
  }

  void Send(const Reply& reply) {
    if (closed_) return;
    std::string frame = Encode(reply);
    reply_bytes_ += frame.size();
    if (reply_bytes_ > kMaxQueuedBytes) return Close();
    replies_.push_back(std::move(frame));
    if (replies_.size() == 1) Write();
  }

  void Write() {
    asio::async_write(socket_, asio::buffer(replies_.front()),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        if (self->closed_) return;
                        if (error) return self->Close();
                        self->reply_bytes_ -= self->replies_.front().size();
                        self->replies_.pop_front();
                        if (!self->replies_.empty()) return self->Write();
                        if (self->refused_) self->Close();
                      });
  }

  // Sends the number of `done`, or its error.
  template <class T>
  void Answer(std::uint32_t id, const Result<T>& done) {
    if (!done.ok()) return Send({.id = id, .status = done.error().code, .value = done.error().text});
    if constexpr (std::is_void_v<T>) {
      Send({.id = id});
    } else {
      Send({.id = id, .number = *done});
    }
  }

  void Refuse(std::uint32_t id, std::string text) {
    refused_ = true;
    Send({.id = id, .status = DTRUN_FAILED_PRECONDITION, .value = std::move(text)});
  }

  void On(std::uint32_t id, Hello& hello) {
    if (hello.version != kProtocolVersion) {
      return Refuse(
          id,
          fmt::format("this rank speaks store protocol {}, its agent {}; use the libdtrun that belongs to "
                      "the dtrun that started the job",
                      hello.version, kProtocolVersion));
    }
    if (!SameSecret(hello.job_key, shared_->job_key)) {
      return Refuse(id,
                    "the agent refused the job key; DTRUN_JOB_KEY is not the one that this job's dtrun set");
    }
    if (hello.generation != shared_->generation) {
      return Refuse(id,
                    fmt::format("this rank belongs to generation {} of the job, which is now at {}; leave",
                                hello.generation, shared_->generation));
    }
    said_hello_ = true;
    hello_timer_.cancel();
    frames_.SetLimit(kMaxFrameBytes);
    rank_ = hello.rank;
    if (hello.main && shared_->events.joined) shared_->events.joined(rank_);
    Send({.id = id});
  }

  void On(std::uint32_t id, Set& set) { Answer(id, shared_->table.Set(Full(set.key), std::move(set.value))); }

  bool On(std::uint32_t id, Get& get) {
    std::string key = Full(get.key);
    return Await(id, {key}, get.timeout_ns,
                 [this, key](Reply& reply) { reply.value = *shared_->table.Find(key); });
  }

  void On(std::uint32_t id, TryGet& get) {
    const std::string key = Full(get.key);
    const std::string* value = shared_->table.Find(key);
    if (value != nullptr) {
      Send({.id = id, .value = *value});
    } else if (const std::string* why = shared_->table.WhyNever({key})) {
      Send({.id = id, .status = DTRUN_REMOTE_FAILURE, .value = *why});
    } else {
      Send({.id = id, .status = DTRUN_NOT_FOUND, .value = fmt::format("there is no key '{}'", get.key)});
    }
  }

  void On(std::uint32_t id, Add& add) { Answer(id, shared_->table.Add(Full(add.key), add.amount)); }

  void On(std::uint32_t id, CompareSet& swap) {
    Answer(id, shared_->table.CompareSet(Full(swap.key), swap.has_expected ? &swap.expected : nullptr,
                                         std::move(swap.desired)));
  }

  void On(std::uint32_t id, Erase& erase) {
    Send({.id = id, .number = shared_->table.Erase(Full(erase.key))});
  }

  bool On(std::uint32_t id, WaitMany& wait) {
    for (std::string& key : wait.keys) key = Full(key);
    return Await(id, std::move(wait.keys), wait.timeout_ns, [](Reply&) {});
  }

  void On(std::uint32_t id, Goodbye&) {
    if (shared_->events.left) shared_->events.left(rank_);
    Send({.id = id});
  }

  void On(std::uint32_t id, Report& report) {
    if (shared_->events.report) shared_->events.report(rank_, report);
    Send({.id = id});
  }

  void On(std::uint32_t id, Fail& fail) {
    shared_->table.Fail(Full(fail.prefix), std::move(fail.text));
    Send({.id = id});
  }

  void On(std::uint32_t id, Metrics& metrics) {
    if (shared_->events.metrics) shared_->events.metrics(rank_, metrics);
    Send({.id = id});
  }

  // `answer` fills the reply of a successful wait.
  bool Await(std::uint32_t id, std::vector<std::string> keys, std::int64_t timeout_ns,
             std::function<void(Reply&)> answer) {
    if (waits_.size() >= kMaxWaits) return false;
    const auto reply_now = [this, id, answer = std::move(answer)] {
      Reply reply{.id = id};
      answer(reply);
      Send(reply);
    };
    const auto fail_now = [this, id](const std::string& why) {
      Send({.id = id, .status = DTRUN_REMOTE_FAILURE, .value = why});
    };
    if (const std::string* why = shared_->table.WhyNever(keys)) {
      fail_now(*why);
      return true;
    }
    // Close makes the table drop the callback before `this` is destroyed.
    const std::uint64_t wait_id =
        shared_->table.Wait(keys, [this, id, reply_now, fail_now](const std::string* failed) {
          waits_.erase(id);
          failed == nullptr ? reply_now() : fail_now(*failed);
        });
    if (wait_id == 0) {
      reply_now();
      return true;
    }
    Wait& wait = waits_[id];
    wait.id = wait_id;
    if (timeout_ns < 0) return true;
    wait.timer = std::make_unique<asio::steady_timer>(socket_.get_executor());
    // Longer durations would overflow the clock; beyond 10 years the difference does not matter.
    constexpr std::int64_t kTenYears = std::int64_t{10} * 365 * 24 * 3600 * 1'000'000'000;
    wait.timer->expires_after(std::chrono::nanoseconds(std::min(timeout_ns, kTenYears)));
    wait.timer->async_wait([self = shared_from_this(), id, wait_id, keys = std::move(keys),
                            timeout_ns](const error_code& error) {
      if (error || self->closed_) return;
      const auto found = self->waits_.find(id);
      if (found == self->waits_.end() || found->second.id != wait_id) return;  // already answered
      self->TimeOut(id, keys, timeout_ns);
    });
    return true;
  }

  void TimeOut(std::uint32_t id, const std::vector<std::string>& keys, std::int64_t timeout_ns) {
    shared_->table.Cancel(waits_[id].id);
    waits_.erase(id);
    std::size_t missing = 0;
    std::string first;
    for (const std::string& key : keys) {
      if (shared_->table.Find(key) != nullptr) continue;
      if (missing++ == 0) first = Short(key);
    }
    const std::string time = FormatDuration(Nanoseconds(timeout_ns));
    std::string text = keys.size() == 1
                           ? fmt::format("key '{}' did not appear within {}", first, time)
                           : fmt::format("{} of {} keys did not appear within {}, among them '{}'", missing,
                                         keys.size(), time, first);
    Send({.id = id, .status = DTRUN_TIMEOUT, .value = std::move(text)});
  }

  std::string Full(std::string_view key) const { return prefix_ + std::string(key); }
  std::string_view Short(std::string_view key) const { return key.substr(prefix_.size()); }

  Socket socket_;
  std::shared_ptr<Shared> shared_;
  asio::steady_timer hello_timer_;
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

Server::Server(std::string job_key, std::uint64_t generation, Events events)
    : shared_(std::make_shared<Shared>()) {
  shared_->job_key = std::move(job_key);
  shared_->generation = generation;
  shared_->events = std::move(events);
}

Server::~Server() {
  while (!shared_->sessions.empty()) (*shared_->sessions.begin())->Close();
}

void Server::Serve(Socket client) { std::make_shared<Session>(std::move(client), shared_)->Start(); }

std::string NewJobKey() {
  unsigned char bytes[32];
  ssize_t got = 0;
  do {
    got = ::getrandom(bytes, sizeof bytes, 0);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof bytes) {  // small reads are complete; without the call there is no secret
    std::perror("dtrun: getrandom");
    std::abort();
  }
  std::string key;
  for (const unsigned char byte : bytes) key += fmt::format("{:02x}", byte);
  return key;
}

}  // namespace dtrun::store
