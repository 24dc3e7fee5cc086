// A key-value space in a map, for tests. Waiting on an absent key times out at once.
#pragma once

#include <map>
#include <stdexcept>

#include "core/plugin/host.h"

namespace dtrun::plugin::testing {

struct FakeKv : dtrun_kv {
  Status Set(std::string_view key, std::string_view value) override {
    if (key == "throw") throw std::runtime_error("thrown by set");
    values[std::string(key)] = value;
    return {};
  }
  Result<std::string> Get(std::string_view key, Nanoseconds timeout) override {
    last_timeout = timeout;
    const auto found = values.find(std::string(key));
    if (found == values.end()) return Error{DTRUN_TIMEOUT, "key '" + std::string(key) + "' did not appear"};
    return found->second;
  }
  Result<std::string> TryGet(std::string_view key) override {
    const auto found = values.find(std::string(key));
    if (found == values.end()) return Error{DTRUN_NOT_FOUND, "no key '" + std::string(key) + "'"};
    return found->second;
  }
  Result<std::int64_t> Add(std::string_view key, std::int64_t amount) override {
    std::string& value = values[std::string(key)];
    const std::int64_t sum = (value.empty() ? 0 : std::stoll(value)) + amount;
    value = std::to_string(sum);
    return sum;
  }
  Result<bool> CompareSet(std::string_view key, bool has_expected, std::string_view expected,
                          std::string_view desired) override {
    const auto found = values.find(std::string(key));
    const bool match =
        has_expected ? found != values.end() && found->second == expected : found == values.end();
    if (match) values[std::string(key)] = desired;
    return match;
  }
  Result<bool> Erase(std::string_view key) override { return values.erase(std::string(key)) == 1; }
  Status WaitMany(const std::vector<std::string>& keys, Nanoseconds timeout) override {
    last_timeout = timeout;
    for (const std::string& key : keys) {
      if (!values.contains(key)) return Error{DTRUN_TIMEOUT, "key '" + key + "' did not appear"};
    }
    return {};
  }

  std::map<std::string, std::string> values;
  Nanoseconds last_timeout{0};
};

}  // namespace dtrun::plugin::testing
