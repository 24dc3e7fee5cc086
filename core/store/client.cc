#include "core/store/client.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/store/connection.h"

namespace dtrun::store {
namespace {

using Clock = Connection::Clock;

constexpr std::size_t kMaxIdle = 8;
// Time for the agent to answer, beyond the call's own wait. Generous, because a machine may be loaded; it
// only matters if the agent is stopped.
constexpr std::chrono::seconds kAnswerTime{60};
// Limit for notifying the agent while leaving: it must not delay the exit.
constexpr std::chrono::seconds kTellTime{5};

class PooledClient final : public Client, public std::enable_shared_from_this<PooledClient> {
 public:
  PooledClient(Address address, Connection main) : address_(std::move(address)), main_(std::move(main)) {}

  std::unique_ptr<dtrun_kv> Space(std::string prefix) override;
  void Goodbye() override { Tell(store::Goodbye{}); }
  void Report(Error failure, const std::vector<int>& members) override {
    failure.text.resize(std::min(failure.text.size(), kMaxReportBytes));
    for (auto& [name, value] : failure.args) value.resize(std::min(value.size(), kMaxReportBytes));
    failure.ranks.resize(std::min(failure.ranks.size(), kMaxErrorRanks));
    Tell(
        store::Report{std::move(failure), members.size() > kMaxReportMembers ? std::vector<int>() : members});
  }
  void Abort(std::string_view reason) override;

  // Sends one request on a connection of its own. `wait`: the time that the agent may take to answer;
  // negative: no limit. An error status of the reply becomes the error.
  Result<Reply> Call(Body body, Nanoseconds wait);

 private:
  // A connection in use, registered for Abort while the lease of a call that waits lives.
  class Lease {
   public:
    Lease(PooledClient& client, Connection connection)
        : client_(client), connection_(std::move(connection)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      const std::lock_guard lock(client_.mutex_);
      if (!connection_) return;  // kept: the next lease may already use it
      client_.waiting_.erase(connection_->fd());
      // Under the lock: Abort must not see a descriptor number that has been reused.
      connection_.reset();
    }
    Connection& operator*() { return *connection_; }
    // Returns the connection for the next call instead of closing it.
    void Keep() {
      const std::lock_guard lock(client_.mutex_);
      const bool interrupted = client_.aborted_ && client_.waiting_.contains(connection_->fd());
      if (interrupted || client_.idle_.size() >= kMaxIdle) return;
      client_.waiting_.erase(connection_->fd());
      client_.idle_.push_back(*std::move(connection_));
      connection_.reset();
    }

   private:
    PooledClient& client_;
    std::optional<Connection> connection_;
  };

  Result<Reply> CallOnce(Body body, Nanoseconds wait);
  // Best effort: the agent may be gone.
  void Tell(Body body);
  Error AbortError() const { return Error::Of(DTRUN_ABORTED, "aborted: {}", abort_reason_); }

  const Address address_;
  std::mutex main_mutex_;
  Connection main_;  // represents the rank; open for life

  mutable std::mutex mutex_;
  std::vector<Connection> idle_;
  std::set<int> waiting_;
  bool aborted_ = false;
  std::string abort_reason_;
};

// A Status or Result out of a reply.
Error ReplyError(const Reply& reply) { return Error{reply.status, reply.value}; }

Result<Reply> SayHello(Connection& connection, const Address& address, bool main) {
  Result<Reply> reply =
      connection.Call(Hello{kProtocolVersion, address.job_key, address.generation, address.rank, main},
                      Clock::now() + kAnswerTime);
  if (reply && reply->status != DTRUN_OK) return ReplyError(*reply);
  return reply;
}

Result<Reply> PooledClient::Call(Body body, Nanoseconds wait) {
  const bool waits = wait.count() != 0;
  Result<Reply> reply = CallOnce(std::move(body), wait);
  if (reply && reply->status != DTRUN_OK) return ReplyError(*reply);
  if (reply) return reply;
  const std::lock_guard lock(mutex_);
  if (aborted_ && waits) return AbortError();  // the reason why the connection broke
  return reply;
}

Result<Reply> PooledClient::CallOnce(Body body, Nanoseconds wait) {
  const bool waits = wait.count() != 0;
  std::optional<Connection> connection;
  {
    const std::lock_guard lock(mutex_);
    if (aborted_ && waits) return AbortError();
    if (!idle_.empty()) {
      connection = std::move(idle_.back());
      idle_.pop_back();
      if (waits) waiting_.insert(connection->fd());
    }
  }
  const bool fresh = !connection;
  if (fresh) {
    Result<Connection> opened = Connection::Open(address_.socket);
    if (!opened) return std::move(opened).error();
    const std::lock_guard lock(mutex_);
    if (aborted_ && waits) return AbortError();
    connection = *std::move(opened);
    if (waits) waiting_.insert(connection->fd());
  }
  Lease lease(*this, *std::move(connection));
  if (fresh) {
    if (Result<Reply> hello = SayHello(*lease, address_, false); !hello) return std::move(hello).error();
  }
  std::optional<Clock::time_point> deadline;
  constexpr Nanoseconds kForever = std::chrono::hours(24 * 365);  // longer deadlines are pointless
  if (wait.count() >= 0 && wait < kForever) deadline = Clock::now() + wait + kAnswerTime;
  Result<Reply> reply = (*lease).Call(std::move(body), deadline);
  if (reply) lease.Keep();
  return reply;
}

void PooledClient::Tell(Body body) {
  const std::lock_guard lock(main_mutex_);
  (void)main_.Call(std::move(body), Clock::now() + kTellTime);
}

void PooledClient::Abort(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(aborted_, true)) return;
  abort_reason_ = reason;
  for (const int fd : waiting_) Connection::Interrupt(fd);
}

// The keys under one prefix.
class PrefixSpace final : public dtrun_kv {
 public:
  PrefixSpace(std::shared_ptr<PooledClient> client, std::string prefix)
      : client_(std::move(client)), prefix_(std::move(prefix)) {}

  Status Set(std::string_view key, std::string_view value) override {
    if (Status valid = Check(key, value); !valid) return valid;
    return Outcome(client_->Call(store::Set{Full(key), std::string(value)}, Nanoseconds(0)));
  }
  Result<std::string> Get(std::string_view key, Nanoseconds timeout) override {
    if (Status valid = Check(key); !valid) return std::move(valid).error();
    return Value(client_->Call(store::Get{Full(key), timeout.count()}, timeout));
  }
  Result<std::string> TryGet(std::string_view key) override {
    if (Status valid = Check(key); !valid) return std::move(valid).error();
    return Value(client_->Call(store::TryGet{Full(key)}, Nanoseconds(0)));
  }
  Result<std::int64_t> Add(std::string_view key, std::int64_t amount) override {
    if (Status valid = Check(key); !valid) return std::move(valid).error();
    return Number(client_->Call(store::Add{Full(key), amount}, Nanoseconds(0)));
  }
  Result<bool> CompareSet(std::string_view key, bool has_expected, std::string_view expected,
                          std::string_view desired) override {
    if (Status valid = Check(key, expected, desired); !valid) return std::move(valid).error();
    return Flag(
        client_->Call(store::CompareSet{Full(key), has_expected, std::string(expected), std::string(desired)},
                      Nanoseconds(0)));
  }
  Result<bool> Erase(std::string_view key) override {
    if (Status valid = Check(key); !valid) return std::move(valid).error();
    return Flag(client_->Call(store::Erase{Full(key)}, Nanoseconds(0)));
  }
  Status WaitMany(const std::vector<std::string>& keys, Nanoseconds timeout) override {
    store::WaitMany wait{{}, timeout.count()};
    for (const std::string& key : keys) {
      if (Status valid = Check(key); !valid) return valid;
      wait.keys.push_back(Full(key));
    }
    if (keys.size() > kMaxWaitKeys) {
      return Error::Of(DTRUN_INVALID_ARGUMENT, "wait for {} keys at once; allowed are {}", keys.size(),
                       kMaxWaitKeys);
    }
    return Outcome(client_->Call(std::move(wait), timeout));
  }
  Status Fail(std::string_view text) override {
    return Outcome(
        client_->Call(store::Fail{prefix_, std::string(text.substr(0, kMaxReportBytes))}, Nanoseconds(0)));
  }

 private:
  std::string Full(std::string_view key) const { return prefix_ + std::string(key); }

  static Status Check(std::string_view key, std::string_view value = {}, std::string_view other = {}) {
    if (key.empty() || key.size() > DTRUN_KV_MAX_KEY_BYTES) {
      return Error::Of(DTRUN_INVALID_ARGUMENT, "a key of {} bytes ('{}'); allowed are 1 to {}", key.size(),
                       key.substr(0, 64), +DTRUN_KV_MAX_KEY_BYTES);
    }
    for (const std::string_view data : {value, other}) {
      if (data.size() > kMaxValueBytes) {
        return Error::Of(DTRUN_INVALID_ARGUMENT, "key '{}' with a value of {} bytes; allowed are {}", key,
                         data.size(), kMaxValueBytes);
      }
    }
    return {};
  }

  static Status Outcome(Result<Reply> reply) {
    if (!reply) return std::move(reply).error();
    return {};
  }
  static Result<std::string> Value(Result<Reply> reply) {
    if (!reply) return std::move(reply).error();
    return std::move(reply->value);
  }
  static Result<std::int64_t> Number(Result<Reply> reply) {
    if (!reply) return std::move(reply).error();
    return reply->number;
  }
  static Result<bool> Flag(Result<Reply> reply) {
    if (!reply) return std::move(reply).error();
    return reply->number != 0;
  }

  const std::shared_ptr<PooledClient> client_;
  const std::string prefix_;
};

std::unique_ptr<dtrun_kv> PooledClient::Space(std::string prefix) {
  return std::make_unique<PrefixSpace>(shared_from_this(), std::move(prefix));
}

}  // namespace

Result<std::shared_ptr<Client>> Client::Connect(const Address& address) {
  Result<Connection> main = Connection::Open(address.socket);
  if (!main) return std::move(main).error();
  if (Result<Reply> hello = SayHello(*main, address, true); !hello) return std::move(hello).error();
  return std::shared_ptr<Client>(std::make_shared<PooledClient>(address, *std::move(main)));
}

}  // namespace dtrun::store
