#include "core/store/table.h"

#include <algorithm>
#include <utility>

#include "core/base/number.h"

namespace dtrun::store {
namespace {

// What an entry of the table costs beside its text.
constexpr std::size_t kBytesOfAnEntry = 128;

}  // namespace

Status Table::Set(std::string key, std::string value) {
  const std::string* const before = Find(key);
  const std::size_t held = bytes_ - (before == nullptr ? 0 : kBytesOfAnEntry + key.size() + before->size());
  const std::size_t more = kBytesOfAnEntry + key.size() + value.size();
  if (more > most_bytes_ - std::min(held, most_bytes_)) {
    return Error::Of(DTRUN_OUT_OF_MEMORY,
                     "the job's store is full: it holds {} bytes of at most {}, and cannot take {} for key "
                     "'{}'; erase keys that no rank needs",
                     bytes_, most_bytes_, more, key);
  }
  bytes_ = held + more;
  const auto [at, inserted] = values_.insert_or_assign(std::move(key), std::move(value));
  if (inserted) Wake(std::string(at->first));  // a copy: the wake may outlive the node
  return {};
}

const std::string* Table::Find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

Result<std::int64_t> Table::Add(const std::string& key, std::int64_t amount) {
  std::int64_t sum = 0;
  if (const std::string* text = Find(key)) {
    const std::optional<std::int64_t> before = NumberOf<std::int64_t>(*text);
    if (!before) {
      return Error::Of(DTRUN_INVALID_ARGUMENT,
                       "add to key '{}': its value of {} bytes is not a decimal counter", key, text->size());
    }
    sum = *before;
  }
  if (__builtin_add_overflow(sum, amount, &sum)) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "add {} to key '{}': the sum overflows", amount, key);
  }
  if (const Status set = Set(key, std::to_string(sum)); !set) return set.error();
  return sum;
}

Result<bool> Table::CompareSet(const std::string& key, const std::string* expected, std::string desired) {
  const std::string* value = Find(key);
  const bool matches = expected == nullptr ? value == nullptr : value != nullptr && *value == *expected;
  const Status set = matches ? Set(key, std::move(desired)) : Status();
  if (!set) return set.error();
  return matches;
}

bool Table::Erase(const std::string& key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  bytes_ -= kBytesOfAnEntry + key.size() + found->second.size();
  values_.erase(found);
  return true;
}

std::uint64_t Table::Wait(std::vector<std::string> keys, Woken woken) {
  Parked parked{std::move(keys), 0, std::move(woken)};
  if (!AdvanceToMissing(parked)) return 0;
  const std::uint64_t wait = ++last_wait_;
  waits_by_key_[parked.keys[parked.at]].push_back(wait);
  waits_.emplace(wait, std::move(parked));
  return wait;
}

void Table::Cancel(std::uint64_t wait) {
  const auto found = waits_.find(wait);
  if (found == waits_.end()) return;
  const auto list = waits_by_key_.find(found->second.keys[found->second.at]);
  if (list != waits_by_key_.end()) {
    std::erase(list->second, wait);
    if (list->second.empty()) waits_by_key_.erase(list);
  }
  waits_.erase(found);
}

void Table::Fail(std::string prefix, std::string text) {
  const auto [failed, fresh] = failed_.emplace(std::move(prefix), std::move(text));
  if (!fresh) return;
  std::vector<std::uint64_t> ended;
  for (const auto& [id, parked] : waits_) {
    if (WhyNever(parked.keys) == &failed->second) ended.push_back(id);
  }
  for (const std::uint64_t id : ended) {
    const auto found = waits_.find(id);
    if (found == waits_.end()) continue;  // cancelled by an earlier callback
    const Woken woken = std::move(found->second.woken);
    Cancel(id);
    woken(&failed->second);
  }
}

const std::string* Table::WhyNever(const std::vector<std::string>& keys) const {
  for (const auto& [prefix, text] : failed_) {
    for (const std::string& key : keys) {
      if (key.starts_with(prefix) && Find(key) == nullptr) return &text;
    }
  }
  return nullptr;
}

bool Table::AdvanceToMissing(Parked& parked) const {
  for (std::size_t tried = 0; tried < parked.keys.size(); ++tried) {
    if (Find(parked.keys[parked.at]) == nullptr) return true;
    parked.at = (parked.at + 1) % parked.keys.size();
  }
  return false;
}

void Table::Wake(const std::string& key) {
  auto node = waits_by_key_.extract(key);
  if (node.empty()) return;
  for (const std::uint64_t wait : node.mapped()) {
    const auto found = waits_.find(wait);
    if (found == waits_.end()) continue;  // cancelled by an earlier callback
    if (AdvanceToMissing(found->second)) {
      waits_by_key_[found->second.keys[found->second.at]].push_back(wait);
      continue;
    }
    const Woken woken = std::move(found->second.woken);
    waits_.erase(found);
    woken(nullptr);
  }
}

}  // namespace dtrun::store
