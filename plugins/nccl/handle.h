// One ncclComm_t: made without blocking, used by one thread at a time, ended in bounded time.
//
// NCCL frees a communicator in ncclCommAbort, which any thread may call while others are about
// to use it; this class keeps the two apart. Owned by the communicator; any thread.
#pragma once

#include <netdb.h>
#include <netinet/in.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "dtrun/plugin.hpp"
#include "dtrun/plugin/patience.hpp"
#include "nccl_abi.h"
#include "nccl_api.h"

namespace dtrun::nccl_plugin {

// A thread may be inside NCCL when another aborts, for example because the device's queue of
// kernels is full. It gets this long to come out before the abort goes on regardless.
inline constexpr auto kComeOut = std::chrono::seconds(1);
// A rank that leaves waits this long for NCCL to be done with the others.
inline constexpr auto kFarewell = std::chrono::seconds(5);

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
         const std::function<void()>& look)
      : api_(api) {
    const std::string doing = "connect " + std::to_string(place.size) + " ranks";
    nccl::Config config = place.config;
    config.blocking = 0;
    nccl::Result state = api_.comm_init_rank_config(&comm_, place.size, place.id, place.rank, &config);
    try {
      sdk::Patience patience;
      while (state == nccl::kInProgress) {
        if (deadline.passed()) {
          throw sdk::Failure(DTRUN_TIMEOUT, "nccl did not " + doing +
                                                " in time; a firewall or a wrong interface: set "
                                                "backend.nccl.interface, or raise backend.timeout");
        }
        look();
        patience.Wait(deadline);
        state = Ask();
      }
      if (state != nccl::kSuccess) throw NcclFailure(api_, doing, state);
    } catch (const sdk::Failure&) {
      Abort();
      throw;
    }
  }

  // Frees it; waits a moment for the other ranks.
  ~Handle() {
    if (aborted_) return;
    nccl::Result state = api_.comm_finalize(comm_);
    const sdk::Deadline deadline(kFarewell);
    sdk::Patience patience;
    while ((state == nccl::kSuccess || state == nccl::kInProgress) && !deadline.passed()) {
      state = Ask();
      if (state != nccl::kInProgress) break;
      patience.Wait(deadline);
    }
    if (state == nccl::kSuccess) {
      api_.comm_destroy(comm_);
    } else {
      Abort();
    }
  }

  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  // Runs `calls` alone. What it returns; kInvalidUsage once aborted.
  nccl::Result Use(const std::function<nccl::Result(nccl::Comm)>& calls) {
    const std::lock_guard lock(mutex_);
    return aborted_ ? nccl::kInvalidUsage : calls(comm_);
  }
  // ncclCommGetAsyncError; kInProgress while another thread is inside NCCL, kInvalidUsage once
  // aborted.
  nccl::Result State() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock ? Ask() : nccl::kInProgress;
  }
  // Ends whatever runs. Idempotent.
  void Abort() {
    if (aborted_.exchange(true)) return;
    std::unique_lock lock(mutex_, std::defer_lock);
    const sdk::Deadline deadline{kComeOut};
    sdk::Patience patience;
    while (!lock.try_lock() && !deadline.passed()) patience.Wait(deadline);
    if (comm_ != nullptr) api_.comm_abort(comm_);
  }

 private:
  // As State, for who holds `mutex_`.
  nccl::Result Ask() {
    if (aborted_) return nccl::kInvalidUsage;
    nccl::Result state = nccl::kSuccess;
    const nccl::Result asked = api_.comm_get_async_error(comm_, &state);
    return asked == nccl::kSuccess ? state : asked;
  }

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

  std::string Text() const {
    const bool ipv6 = host.find(':') != std::string::npos;
    return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
  }  // "10.0.0.5:4711", "[fd00::2]:4711"
};

// nullopt when the id holds no address, as one of a future NCCL may.
inline std::optional<BootstrapAddress> ReadBootstrapAddress(const nccl::UniqueId& id) {
  constexpr std::size_t kMagicBytes = 8;
  sockaddr_in6 raw;  // the larger one
  static_assert(kMagicBytes + sizeof raw <= sizeof id.internal);
  std::memcpy(&raw, id.internal + kMagicBytes, sizeof raw);
  if (raw.sin6_family != AF_INET && raw.sin6_family != AF_INET6) return std::nullopt;
  const bool ipv6 = raw.sin6_family == AF_INET6;
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&raw), ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in),
                  host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return std::nullopt;
  const std::string text(host);
  return BootstrapAddress{text.substr(0, text.find('%')), std::atoi(port),
                          ipv6 ? text == "::1" : text.rfind("127.", 0) == 0};
}

}  // namespace dtrun::nccl_plugin
