// The values of a store, and the waits for missing keys.
//
// Pure: no I/O, no clock. Owned by the server; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"

namespace dtrun::store {

class Table {
 public:
  // Ends a wait: all keys exist, or `failed` explains why they never will. Called from Set, Add, CompareSet
  // or Fail. May call Cancel, but must not change the table otherwise.
  using Woken = std::function<void(const std::string* failed)>;

  // Bytes of all keys and values, with what an entry costs beside them.
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;
  explicit Table(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  // DTRUN_OUT_OF_MEMORY, and nothing changes, where the table would hold more than it may.
  Status Set(std::string key, std::string value);
  // Null when absent; valid until the table changes.
  const std::string* Find(const std::string& key) const;
  // Returns the new sum. DTRUN_INVALID_ARGUMENT if the value is not a counter or would overflow.
  Result<std::int64_t> Add(const std::string& key, std::int64_t amount);
  // Stores `desired` iff the value equals `*expected`; null: iff absent.
  Result<bool> CompareSet(const std::string& key, const std::string* expected, std::string desired);
  bool Erase(const std::string& key);

  // Calls `woken` once, as soon as all keys exist, and then forgets the wait. Returns 0 without calling it if
  // they already exist. `keys` may contain duplicates.
  std::uint64_t Wait(std::vector<std::string> keys, Woken woken);
  void Cancel(std::uint64_t wait);
  // Fails current and later waits for missing keys that begin with `prefix` (WhyNever). The first text for a
  // prefix is kept.
  void Fail(std::string prefix, std::string text);
  // Why waiting for a missing one of these keys fails; null: it does not.
  const std::string* WhyNever(const std::vector<std::string>& keys) const;
  std::size_t waits() const { return waits_.size(); }

 private:
  // A wait is parked on one missing key at a time, so n keys arriving in any order cost O(n) wake-ups.
  struct Parked {
    std::vector<std::string> keys;
    std::size_t at = 0;  // keys[at] is missing
    Woken woken;
  };
  bool AdvanceToMissing(Parked& parked) const;
  void Wake(const std::string& key);

  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<std::string, std::vector<std::uint64_t>> waits_by_key_;
  std::map<std::uint64_t, Parked> waits_;
  std::map<std::string, std::string> failed_;  // by prefix
  std::uint64_t last_wait_ = 0;
  const std::size_t most_bytes_;
  std::size_t bytes_ = 0;
};

}  // namespace dtrun::store
