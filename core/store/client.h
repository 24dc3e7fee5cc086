// A rank's connection to its agent's key-value store.
//
// Speaks core/store/protocol.h over the agent's Unix socket. Any number of threads may use it: a blocking
// call never delays another. Abort ends every blocked and later call that waits with DTRUN_ABORTED; the
// others go on, as by them an aborted rank tells its peers why.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/plugin/host.h"

namespace dtrun::store {

struct Address {
  std::filesystem::path socket;
  std::string job_key;  // 64 hex digits
  std::uint64_t generation = 0;
  int rank = -1;
};

class Client {
 public:
  // Connects and authenticates with the job key. Errors: no such socket (the agent is gone), key refused.
  static Result<std::shared_ptr<Client>> Connect(const Address& address);
  virtual ~Client() = default;

  // A key-value space in which all keys begin with `prefix`. The client must outlive it.
  virtual std::unique_ptr<dtrun_kv> Space(std::string prefix) = 0;
  // Notifies the agent that this rank leaves on purpose.
  virtual void Goodbye() = 0;
  // Reports a failure that this rank noticed to the agent; its ranks are those of the world. `members`: ranks
  // of the communicator that misses the peer; empty: all ranks.
  virtual void Report(Error failure, const std::vector<int>& members = {}) = 0;
  // [any thread]
  virtual void Abort(std::string_view reason) = 0;
};

}  // namespace dtrun::store
