#include "handle.h"

#include <netdb.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>

#include "dtrun/plugin/patience.hpp"
#include "nccl_api.h"

namespace dtrun::nccl_plugin {
namespace {

// A thread may be inside NCCL when another aborts, for example because the device's queue of
// kernels is full. It gets this long to come out before the abort goes on regardless.
constexpr auto kComeOut = std::chrono::seconds(1);
// A rank that leaves waits this long for NCCL to be done with the others.
constexpr auto kFarewell = std::chrono::seconds(5);

}  // namespace

Handle::Handle(const NcclApi& api, const Place& place, const sdk::Deadline& deadline,
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

Handle::~Handle() {
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

nccl::Result Handle::Use(const std::function<nccl::Result(nccl::Comm)>& calls) {
  const std::lock_guard lock(mutex_);
  return aborted_ ? nccl::kInvalidUsage : calls(comm_);
}

nccl::Result Handle::State() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock ? Ask() : nccl::kInProgress;
}

nccl::Result Handle::Ask() {
  if (aborted_) return nccl::kInvalidUsage;
  nccl::Result state = nccl::kSuccess;
  const nccl::Result asked = api_.comm_get_async_error(comm_, &state);
  return asked == nccl::kSuccess ? state : asked;
}

void Handle::Abort() {
  if (aborted_.exchange(true)) return;
  std::unique_lock lock(mutex_, std::defer_lock);
  const sdk::Deadline deadline{kComeOut};
  sdk::Patience patience;
  while (!lock.try_lock() && !deadline.passed()) patience.Wait(deadline);
  if (comm_ != nullptr) api_.comm_abort(comm_);
}

std::string BootstrapAddress::Text() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::optional<BootstrapAddress> ReadBootstrapAddress(const nccl::UniqueId& id) {
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
