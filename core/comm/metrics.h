// What the program reports with dtrun_metric: keeps the newest value of each name and sends what has changed
// to the root, at most once a second, over a connection of its own.
//
// One per process, never destroyed. Any thread; a call takes a lock for well under a microsecond and never
// waits for the network. The sending thread starts with the first value. Nothing is kept where dtrun did not
// start the process, nor in a forked child.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/store/client.h"
#include "core/store/metric.h"

namespace dtrun::comm {

class Metrics {
 public:
  // Of this process, with the address of its environment.
  static Metrics& The();

  // No address: values are checked and dropped.
  explicit Metrics(std::optional<store::Address> address) : address_(std::move(address)) {}

  Status Set(std::string_view name, double value, std::optional<std::int64_t> step);
  // Sends what is left, for at most `wait`; no value is kept afterwards. For the end of the process.
  void End(std::chrono::milliseconds wait);

 private:
  using Clock = std::chrono::steady_clock;
  struct Value {
    double value = 0;
    std::optional<std::int64_t> step;
    Clock::time_point at;
    bool fresh = false;  // not sent yet
  };

  void StartSending();
  void Send();
  store::Metrics TakeFresh();

  const std::optional<store::Address> address_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Value, std::less<>> values_;
  bool any_fresh_ = false;
  bool sends_ = false;  // the thread lives
  bool ending_ = false;
};

}  // namespace dtrun::comm
