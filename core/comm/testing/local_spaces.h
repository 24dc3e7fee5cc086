// Key-value spaces over one map in this process, for ranks that are threads of a test.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/plugin/host.h"

namespace dtrun::comm::testing {

class LocalSpaces {
 public:
  std::unique_ptr<dtrun_kv> Space(std::string prefix) {
    return std::make_unique<Kv>(*this, std::move(prefix));
  }
  std::vector<std::string> Keys() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> keys;
    for (const auto& [key, value] : values_) keys.push_back(key);
    return keys;
  }

 private:
  struct Kv : dtrun_kv {
    Kv(LocalSpaces& of, std::string begin) : spaces(of), prefix(std::move(begin)) {}
    Status Set(std::string_view key, std::string_view value) override {
      const std::lock_guard lock(spaces.mutex_);
      spaces.values_[prefix + std::string(key)] = value;
      spaces.changed_.notify_all();
      return {};
    }
    Result<std::string> Get(std::string_view key, Nanoseconds timeout) override {
      const std::string name = prefix + std::string(key);
      std::unique_lock lock(spaces.mutex_);
      const auto there = [&] { return spaces.values_.contains(name); };
      const auto over = [&] { return there() || spaces.failed_.contains(prefix); };
      if (timeout.count() < 0) {
        spaces.changed_.wait(lock, over);
      } else if (!spaces.changed_.wait_for(lock, timeout, over)) {
        return Error{DTRUN_TIMEOUT, "key '" + name + "' did not appear"};
      }
      if (!there()) return Error{DTRUN_REMOTE_FAILURE, spaces.failed_[prefix]};
      return spaces.values_[name];
    }
    Result<std::string> TryGet(std::string_view key) override {
      const std::lock_guard lock(spaces.mutex_);
      const auto found = spaces.values_.find(prefix + std::string(key));
      if (found != spaces.values_.end()) return found->second;
      return Error{DTRUN_NOT_FOUND, "no key '" + prefix + std::string(key) + "'"};
    }
    Result<std::int64_t> Add(std::string_view key, std::int64_t amount) override {
      const std::lock_guard lock(spaces.mutex_);
      std::string& value = spaces.values_[prefix + std::string(key)];
      const std::int64_t sum = amount + (value.empty() ? 0 : std::stoll(value));
      value = std::to_string(sum);
      spaces.changed_.notify_all();
      return sum;
    }
    Result<bool> CompareSet(std::string_view key, bool has_expected, std::string_view expected,
                            std::string_view desired) override {
      const std::lock_guard lock(spaces.mutex_);
      const std::string name = prefix + std::string(key);
      const auto found = spaces.values_.find(name);
      const bool there = found != spaces.values_.end();
      if (there != has_expected || (there && found->second != expected)) return false;
      spaces.values_[name] = desired;
      spaces.changed_.notify_all();
      return true;
    }
    Status Fail(std::string_view text) override {
      const std::lock_guard lock(spaces.mutex_);
      spaces.failed_.emplace(prefix, text);
      spaces.changed_.notify_all();
      return {};
    }
    Result<bool> Erase(std::string_view) override { return NotThere(); }
    Status WaitMany(const std::vector<std::string>&, Nanoseconds) override { return NotThere(); }
    static Error NotThere() { return Error{DTRUN_UNSUPPORTED, "local spaces only set, add and get"}; }

    LocalSpaces& spaces;
    const std::string prefix;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::string> failed_;  // by prefix
};

}  // namespace dtrun::comm::testing
