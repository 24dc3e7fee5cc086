// One ncclComm_t: made without blocking, used by one thread at a time, ended in bounded time.
//
// NCCL frees a communicator in ncclCommAbort, which any thread may call while others are about
// to use it; this class keeps the two apart. Owned by the communicator; any thread.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "dtrun/plugin.hpp"
#include "nccl_abi.h"
#include "nccl_api.h"

namespace dtrun::nccl_plugin {

class Handle {
 public:
  struct Place {
    nccl::UniqueId id;
    int rank;
    int size;
    nccl::Config config;  // its `blocking` is ignored: nothing blocks
  };
  // Joins `place`. `look` is called again and again while NCCL connects the ranks; what it throws
  // ends that. Throws sdk::Failure: DTRUN_TIMEOUT at `deadline`, else what NCCL said.
  Handle(const NcclApi& api, const Place& place, const sdk::Deadline& deadline,
         const std::function<void()>& look);
  // Frees it; waits a moment for the other ranks.
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  // Runs `calls` alone. What it returns; kInvalidUsage once aborted.
  nccl::Result Use(const std::function<nccl::Result(nccl::Comm)>& calls);
  // ncclCommGetAsyncError; kInProgress while another thread is inside NCCL, kInvalidUsage once
  // aborted.
  nccl::Result State();
  // Ends whatever runs. Idempotent.
  void Abort();

 private:
  // As State, for who holds `mutex_`.
  nccl::Result Ask();

  const NcclApi& api_;
  nccl::Comm comm_ = nullptr;
  std::mutex mutex_;  // held inside NCCL
  std::atomic<bool> aborted_{false};
};

// The address at which an NCCL unique id says that rank 0 listens.
//
// NCCL chooses a network interface when it makes the id and writes the outcome into it: eight
// bytes of magic, then a sockaddr (struct ncclBootstrapHandle of src/include/bootstrap.h, 2.14 to
// 2.28). Pure; any thread.
struct BootstrapAddress {
  std::string host;  // numeric: "10.0.0.5", "fd00::2"
  int port = 0;
  bool loopback = false;

  std::string Text() const;  // "10.0.0.5:4711", "[fd00::2]:4711"
};

// nullopt when the id holds no address, as one of a future NCCL may.
std::optional<BootstrapAddress> ReadBootstrapAddress(const nccl::UniqueId& id);

}  // namespace dtrun::nccl_plugin
