#include "core/store/torch_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/base/number.h"
#include "core/base/text.h"

namespace dtrun::store {
namespace {

// The memory cost of an entry beside its text.
constexpr std::size_t kEntryBytes = 128;
constexpr std::size_t kShownOfAKey = 100;

constexpr std::uint8_t kReady = 0, kNotReady = 1;
constexpr std::uint8_t kStopWaiting = 0, kWaitCanceled = 1;

class TorchReply {
 public:
  TorchReply& Byte(std::uint8_t value) {
    bytes_ += static_cast<char>(value);
    return *this;
  }
  template <typename T>
  TorchReply& Number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  TorchReply& Text(std::string_view text) {
    Number<std::uint64_t>(text.size());
    bytes_ += text;
    return *this;
  }
  std::string Done() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

Error Refused(std::string why) { return Error{DTRUN_INVALID_ARGUMENT, std::move(why)}; }

std::size_t CostOf(std::string_view key, std::string_view value) {
  return kEntryBytes + key.size() + value.size();
}

}  // namespace

Status TorchTable::Take(Client client, TorchRequest request) {
  std::vector<std::string>& fields = request.fields;
  switch (request.op) {
    case TorchOp::kSet: return Set(fields[0], std::move(fields[1]));
    case TorchOp::kCompareSet: return CompareSet(client, request);
    case TorchOp::kGet: return MultiGet(client, fields);
    case TorchOp::kMultiGet: return MultiGet(client, fields);
    case TorchOp::kAdd: return Add(client, fields[0], request.number);
    case TorchOp::kCheck: {
      const bool ready = std::ranges::all_of(fields, [&](const std::string& key) { return Has(key); });
      send_(client, TorchReply().Byte(ready ? kReady : kNotReady).Done());
      return {};
    }
    case TorchOp::kWait: return Await(client, std::move(fields));
    case TorchOp::kNumKeys:
      send_(client, TorchReply().Number<std::int64_t>(static_cast<std::int64_t>(values_.size())).Done());
      return {};
    case TorchOp::kDeleteKey: Erase(client, fields[0]); return {};
    case TorchOp::kAppend: return Append(fields[0], fields[1]);
    case TorchOp::kMultiSet:
      for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
        if (Status set = Set(fields[i], std::move(fields[i + 1])); !set) return set;
      }
      return {};
    case TorchOp::kCancelWait:
      CancelWait(client);
      send_(client, TorchReply().Byte(kWaitCanceled).Done());
      return {};
    case TorchOp::kPing:
      send_(client, TorchReply().Number(static_cast<std::uint32_t>(request.number)).Done());
      return {};
    case TorchOp::kQueuePush: return Push(fields[0], std::move(fields[1]));
    case TorchOp::kQueuePop: Pop(client, fields[0]); return {};
    case TorchOp::kQueueLen: {
      const auto queue = queues_.find(fields[0]);
      const std::size_t size = queue == queues_.end() ? 0 : queue->second.size();
      send_(client, TorchReply().Number<std::int64_t>(static_cast<std::int64_t>(size)).Done());
      return {};
    }
    case TorchOp::kListKeys: return ListKeys(client);
    case TorchOp::kBarrier: return Barrier(client, fields[0], request.number);
    case TorchOp::kWatchKey:
      if (Status kept = Keep(CostOf(fields[0], {}), fields[0]); !kept) return kept;
      watching_[fields[0]].push_back(client);
      send_(client, TorchReply().Byte(static_cast<std::uint8_t>(Change::kRegistered)).Done());
      return {};
    case TorchOp::kValidate: break;
  }
  return Refused("it sent a request that torch does not have");
}

void TorchTable::Forget(Client client) {
  CancelWait(client);
  for (auto it = watching_.begin(); it != watching_.end();) {
    bytes_ -= std::erase(it->second, client) * CostOf(it->first, {});
    it = it->second.empty() ? watching_.erase(it) : std::next(it);
  }
}

Status TorchTable::Keep(std::size_t more, const std::string& key) {
  if (more > limits_.bytes - std::min(bytes_, limits_.bytes)) {
    return Error::Of(DTRUN_BUSY,
                     "the store is full: it holds {} bytes of at most {}, and cannot take {} for key '{}'; "
                     "delete keys that no rank needs",
                     bytes_, limits_.bytes, more, Printable(key.substr(0, kShownOfAKey)));
  }
  bytes_ += more;
  return {};
}

Status TorchTable::Set(const std::string& key, std::string value) {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    if (Status kept = Keep(CostOf(key, value), key); !kept) return kept;
    Tell(key, Change::kCreated, {}, value);
    values_.emplace(key, std::move(value));
  } else {
    if (Status kept = Keep(value.size(), key); !kept) return kept;
    bytes_ -= found->second.size();
    Tell(key, Change::kUpdated, found->second, value);
    found->second = std::move(value);
  }
  Wake(key);
  return {};
}

// A missing key counts as equal to the expected value, as in torch's own server.
Status TorchTable::CompareSet(Client client, TorchRequest& request) {
  const std::string& key = request.fields[0];
  const std::string& expected = request.fields[1];
  std::string& desired = request.fields[2];
  const auto found = values_.find(key);
  const bool absent = found == values_.end();
  const bool swaps = absent ? expected.empty() : found->second == expected;
  std::string answer = swaps ? desired : absent ? expected : found->second;
  if (swaps) {
    if (Status set = Set(key, std::move(desired)); !set) return set;
  }
  send_(client, TorchReply().Text(answer).Done());
  return {};
}

// Parses like std::stoll.
Result<std::int64_t> TorchTable::CounterAt(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::int64_t{0};
  std::string_view text = found->second;
  if (const auto count = TakeNumber<std::int64_t>(&text)) return *count;
  return Refused(fmt::format("it adds to a key that holds {} bytes and no number", text.size()));
}

Status TorchTable::Add(Client client, const std::string& key, std::int64_t amount) {
  const Result<std::int64_t> count = CounterAt(key);
  if (!count) return count.error();
  std::int64_t sum = 0;
  if (__builtin_add_overflow(*count, amount, &sum)) return Refused("it counts beyond 64 bits");
  if (Status set = Set(key, std::to_string(sum)); !set) return set;
  send_(client, TorchReply().Number(sum).Done());
  return {};
}

Status TorchTable::Append(const std::string& key, const std::string& more) {
  const auto found = values_.find(key);
  if (found == values_.end()) return Set(key, more);
  if (found->second.size() + more.size() > kMaxTorchValueBytes) {
    return Refused(fmt::format("it appends beyond the {} bytes of a value", kMaxTorchValueBytes));
  }
  if (Status kept = Keep(more.size(), key); !kept) return kept;
  found->second += more;
  Tell(key, Change::kAppended, {}, more);
  Wake(key);
  return {};
}

// A missing key has an empty value.
Status TorchTable::MultiGet(Client client, const std::vector<std::string>& keys) {
  std::size_t size = 0;
  for (const std::string& key : keys) {
    const auto found = values_.find(key);
    size += sizeof(std::uint64_t) + (found == values_.end() ? 0 : found->second.size());
    if (size > limits_.reply_bytes) {
      return Refused(fmt::format("it asked for more than {} bytes at once", limits_.reply_bytes));
    }
  }
  TorchReply reply;
  for (const std::string& key : keys) {
    const auto found = values_.find(key);
    reply.Text(found == values_.end() ? std::string_view() : found->second);
  }
  send_(client, reply.Done());
  return {};
}

Status TorchTable::ListKeys(Client client) {
  TorchReply reply;
  reply.Number<std::int64_t>(static_cast<std::int64_t>(values_.size()));
  std::size_t size = 0;
  for (const auto& [key, value] : values_) {
    size += sizeof(std::uint64_t) + key.size();
    if (size > limits_.reply_bytes) {
      return Refused(fmt::format("it asked for more than {} bytes at once", limits_.reply_bytes));
    }
    reply.Text(key);
  }
  send_(client, reply.Done());
  return {};
}

// The last of `size` clients releases all.
Status TorchTable::Barrier(Client client, const std::string& key, std::int64_t size) {
  const Result<std::int64_t> count = CounterAt(key);
  if (!count) return count.error();
  if (*count == INT64_MAX) return Refused("it counts beyond 64 bits");
  const std::string text = std::to_string(*count + 1);
  const auto found = values_.find(key);
  if (Status kept = Keep(found == values_.end() ? CostOf(key, text) : text.size(), key); !kept) return kept;
  if (found != values_.end()) bytes_ -= found->second.size();
  values_[key] = text;
  if (*count + 1 >= size) {
    Wake(key);
    send_(client, TorchReply().Byte(kStopWaiting).Done());
    return {};
  }
  CancelWait(client);
  if (Status kept = Keep(CostOf(key, {}), key); !kept) return kept;
  waiting_[key].push_back(client);
  waits_[client] = {{key}, 1};
  return {};
}

Status TorchTable::Push(const std::string& key, std::string value) {
  if (Status kept = Keep(CostOf(key, value), key); !kept) return kept;
  queues_[key].push_back(std::move(value));
  Wake(key, true);
  return {};
}

void TorchTable::Pop(Client client, const std::string& key) {
  TorchReply reply;
  const auto queue = queues_.find(key);
  if (queue == queues_.end()) return send_(client, reply.Number<std::int64_t>(0).Done());
  std::deque<std::string>& values = queue->second;  // never empty
  reply.Number<std::int64_t>(static_cast<std::int64_t>(values.size())).Text(values.front());
  bytes_ -= CostOf(key, values.front());
  values.pop_front();
  if (values.empty()) queues_.erase(queue);
  send_(client, reply.Done());
}

void TorchTable::Erase(Client client, const std::string& key) {
  const auto found = values_.find(key);
  const bool there = found != values_.end();
  if (there) {
    bytes_ -= CostOf(key, found->second);
    Tell(key, Change::kDeleted, found->second, {});
    values_.erase(found);
  }
  send_(client, TorchReply().Number<std::int64_t>(there ? 1 : 0).Done());
}

bool TorchTable::Has(const std::string& key) const { return values_.contains(key) || queues_.contains(key); }

Status TorchTable::Await(Client client, std::vector<std::string> keys) {
  CancelWait(client);
  std::erase_if(keys, [&](const std::string& key) { return Has(key); });
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  if (keys.empty()) {
    send_(client, TorchReply().Byte(kStopWaiting).Done());
    return {};
  }
  std::size_t cost = 0;
  for (const std::string& key : keys) cost += CostOf(key, {});
  if (Status kept = Keep(cost, keys.front()); !kept) return kept;
  for (const std::string& key : keys) waiting_[key].push_back(client);
  const std::size_t missing = keys.size();
  waits_[client] = {std::move(keys), missing};
  return {};
}

void TorchTable::CancelWait(Client client) {
  const auto wait = waits_.find(client);
  if (wait == waits_.end()) return;
  for (const std::string& key : wait->second.keys) {
    bytes_ -= CostOf(key, {});
    const auto list = waiting_.find(key);
    if (list == waiting_.end()) continue;
    std::erase(list->second, client);
    if (list->second.empty()) waiting_.erase(list);
  }
  waits_.erase(wait);
}

void TorchTable::Wake(const std::string& key, bool one) {
  const auto list = waiting_.find(key);
  if (list == waiting_.end()) return;
  const std::deque<Client> clients = list->second;
  if (!one) waiting_.erase(list);
  for (const Client client : clients) {
    Wait& wait = waits_.at(client);
    if (one) std::erase(waiting_[key], client);
    if (--wait.missing > 0) continue;
    CancelWait(client);
    send_(client, TorchReply().Byte(kStopWaiting).Done());
    if (one) break;
  }
  if (const auto rest = waiting_.find(key); rest != waiting_.end() && rest->second.empty())
    waiting_.erase(rest);
}

void TorchTable::Tell(const std::string& key, Change change, std::string_view before,
                      std::string_view after) {
  const auto clients = watching_.find(key);
  if (clients == watching_.end()) return;
  for (const Client client : clients->second) {
    send_(client,
          TorchReply().Byte(static_cast<std::uint8_t>(change)).Text(key).Text(before).Text(after).Done());
  }
}

}  // namespace dtrun::store
