// The values, queues and waiting clients of a TCPStore, with the semantics of torch's own server.
//
// Pure: no I/O, no clock; replies go to `send`. Memory that clients can use is limited. Owned by the server;
// one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/store/torch_wire.h"

namespace dtrun::store {

class TorchTable {
 public:
  using Client = std::uint64_t;
  // Never called within Forget. Must not call the table.
  using Send = std::function<void(Client client, std::string bytes)>;

  struct Limits {
    std::size_t bytes = std::size_t{256} << 20;       // of all keys, values and waits
    std::size_t reply_bytes = std::size_t{64} << 20;  // of one reply
  };

  explicit TorchTable(Send send) : TorchTable(std::move(send), Limits()) {}
  TorchTable(Send send, Limits limits) : send_(std::move(send)), limits_(limits) {}

  // An error: the request is invalid, and its client must be dropped, as torch's server does.
  Status Take(Client client, TorchRequest request);
  // The client has disconnected.
  void Forget(Client client);

  std::size_t bytes() const { return bytes_; }

 private:
  struct Wait {
    std::vector<std::string> keys;
    std::size_t missing = 0;
  };
  enum class Change : std::uint8_t { kUpdated, kCreated, kDeleted, kRegistered, kAppended };

  Status Keep(std::size_t more, const std::string& key);
  Status Set(const std::string& key, std::string value);
  Status CompareSet(Client client, TorchRequest& request);
  Status Add(Client client, const std::string& key, std::int64_t amount);
  Status Append(const std::string& key, const std::string& more);
  Status MultiGet(Client client, const std::vector<std::string>& keys);
  Status ListKeys(Client client);
  Status Barrier(Client client, const std::string& key, std::int64_t size);
  Status Push(const std::string& key, std::string value);
  void Pop(Client client, const std::string& key);
  void Erase(Client client, const std::string& key);
  Result<std::int64_t> CounterAt(const std::string& key) const;
  bool Has(const std::string& key) const;
  Status Await(Client client, std::vector<std::string> keys);
  void CancelWait(Client client);
  // Wakes clients that wait for `key`. `one`: only the first client with no other key to wait for.
  void Wake(const std::string& key, bool one = false);
  void Tell(const std::string& key, Change change, std::string_view before, std::string_view after);

  const Send send_;
  const Limits limits_;
  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<std::string, std::deque<std::string>> queues_;
  std::unordered_map<Client, Wait> waits_;
  std::unordered_map<std::string, std::deque<Client>> waiting_;  // by key
  std::unordered_map<std::string, std::vector<Client>> watching_;
  std::size_t bytes_ = 0;
};

}  // namespace dtrun::store
