#include "core/comm/metrics.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "core/base/read_file.h"
#include "core/base/text.h"
#include "core/base/thread.h"
#include "core/comm/environment.h"
#include "core/store/connection.h"

namespace dtrun::comm {
namespace {

constexpr std::chrono::seconds kBetweenSends{1};
// After an error: the root's host is busy, or the job is over.
constexpr std::chrono::seconds kBeforeAnotherTry{10};
constexpr std::chrono::seconds kSendTime{10};
constexpr std::chrono::milliseconds kEndTime{1000};

std::atomic<bool> metrics_forked = false;

std::optional<store::Address> AddressOfThisRank() {
  const Result<Environment> read = ReadEnvironment(::getenv);
  if (!read || !read->launched) return std::nullopt;
  return store::Address{read->store, read->job_key, read->generation, read->rank};
}

void AddUse(store::Metrics* metrics) {
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0) {
    const auto of = [](const timeval& time) {
      return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
    };
    metrics->processor = of(used.ru_utime) + of(used.ru_stime);
  }
  long long all = 0, resident = 0;  // in pages
  if (std::sscanf(ReadKernelFile("/proc/self/statm").c_str(), "%lld %lld", &all, &resident) == 2)
    metrics->memory = resident * ::sysconf(_SC_PAGESIZE);
}

// A connection that sends what a rank reports; opened at the first call, and again after an error.
class MetricsLine {
 public:
  explicit MetricsLine(const store::Address& address) : address_(address) {}

  Status Send(store::Metrics metrics) {
    if (!connection_) {
      Result<store::Connection> opened = store::Connection::Open(address_.socket);
      if (!opened) return std::move(opened).error();
      connection_ = *std::move(opened);
      if (Status known = Call(store::Hello{store::kProtocolVersion, address_.job_key, address_.generation,
                                           address_.rank, false});
          !known)
        return known;
    }
    return Call(std::move(metrics));
  }

 private:
  Status Call(store::Body body) {
    Result<store::Reply> reply =
        connection_->Call(std::move(body), store::Connection::Clock::now() + kSendTime);
    if (reply && reply->status == DTRUN_OK) return {};
    connection_.reset();
    return reply ? Error{reply->status, reply->value} : std::move(reply).error();
  }

  const store::Address address_;
  std::optional<store::Connection> connection_;
};

}  // namespace

Metrics& Metrics::The() {
  static auto* const metrics = [] {
    auto* const made = new Metrics(AddressOfThisRank());
    if (made->address_) {
      ::pthread_atfork(nullptr, nullptr, [] { metrics_forked = true; });
      std::atexit([] { The().End(kEndTime); });
    }
    return made;
  }();
  return *metrics;
}

Status Metrics::Set(std::string_view name, double value, std::optional<std::int64_t> step) {
  if (!address_ || metrics_forked) return store::CheckMetricName(name);
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  auto found = values_.find(name);
  if (found == values_.end()) {
    if (Status valid = store::CheckMetricName(name); !valid) return valid;
    if (values_.size() >= store::kMaxMetrics) {
      return Error{
          DTRUN_INVALID_ARGUMENT,
          fmt::format(
              "'{}' would be metric name {} of this process; allowed are {}: a name must not contain a "
              "number that changes, such as the step",
              name, values_.size() + 1, store::kMaxMetrics)};
    }
    found = values_.emplace(name, Value()).first;
  }
  if (ending_) return {};
  found->second = {value, step, now, true};
  if (!sends_) StartSending();
  if (!std::exchange(any_fresh_, true)) changed_.notify_all();
  return {};
}

void Metrics::StartSending() {
  try {
    StartThread("dtrun-metrics", [this] { Send(); }).detach();
    sends_ = true;
  } catch (const std::system_error&) {  // `ulimit -u`: the next value tries again
  }
}

store::Metrics Metrics::TakeFresh() {
  store::Metrics taken;
  const Clock::time_point now = Clock::now();
  for (auto& [name, value] : values_) {
    if (std::exchange(value.fresh, false))
      taken.values.push_back({name, value.value, value.step,
                              std::min<std::chrono::nanoseconds>(now - value.at, store::kMaxMetricAge)});
  }
  any_fresh_ = false;
  return taken;
}

void Metrics::Send() {
  MetricsLine line(*address_);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return any_fresh_ || ending_; });
    if (any_fresh_) {
      store::Metrics metrics = TakeFresh();
      lock.unlock();
      AddUse(&metrics);
      const Status sent = line.Send(std::move(metrics));
      lock.lock();
      changed_.wait_for(lock, sent ? kBetweenSends : kBeforeAnotherTry, [this] { return ending_; });
    }
    if (!ending_ || any_fresh_) continue;
    sends_ = false;
    changed_.notify_all();
    return;
  }
}

void Metrics::End(std::chrono::milliseconds wait) {
  if (metrics_forked) return;
  std::unique_lock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, wait, [this] { return !sends_; });
}

}  // namespace dtrun::comm
