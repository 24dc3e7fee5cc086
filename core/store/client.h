// A rank's connection to the key-value store of its agent.
//
// Speaks core/store/protocol.h over the agent's Unix socket. Safe for any number of
// threads: a blocking call never delays another. Abort ends every blocked and later call
// with DTRUN_ABORTED.
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
  // Connects and shows the key. Errors: no such socket (the agent is gone), key refused.
  static Result<std::shared_ptr<Client>> Connect(const Address& address);
  virtual ~Client() = default;

  // A key-value space whose keys all begin with `prefix`. The client must outlive it.
  virtual std::unique_ptr<dtrun_kv> Space(std::string prefix) = 0;
  // Tells the agent that this rank leaves on purpose.
  virtual void Goodbye() = 0;
  // Tells the agent of a failure that this rank noticed: `peer` (-1 unknown), one line.
  // `members`: of the communicator in which it was missed, as ranks of the world; empty: all ranks.
  virtual void Report(int peer, std::string_view what, const std::vector<int>& members = {}) = 0;
  // [any thread]
  virtual void Abort(std::string_view reason) = 0;
};

}  // namespace dtrun::store
