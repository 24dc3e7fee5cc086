#include <limits>
#include <memory>
#include <utility>

#include "arguments.h"
#include "dtrun/plugin/membership.hpp"
#include "services.h"

namespace dtrun::services {
namespace {

std::string_view Value(const void* value, std::uint64_t bytes) {
  if (bytes > 0) Require(value, "the value");
  return bytes == 0 ? std::string_view() : std::string_view(static_cast<const char*>(value), bytes);
}

std::string Topic(dtrun_string topic) {
  if (topic.size > 0 && topic.data != nullptr) return sdk::internal::Text(topic);
  throw sdk::Failure(DTRUN_INVALID_ARGUMENT, "the topic is empty");
}

// Gives `value` to the plugin in memory of the host.
dtrun_status Hand(const dtrun_host* host, const std::string& value, void** out_value,
                  std::uint64_t* out_bytes) {
  const auto* memory = sdk::Host(host).Get<dtrun_memory_service>(DTRUN_MEMORY_SERVICE);
  void* const copy = memory->allocate(host, value.size(), alignof(std::max_align_t));
  if (copy == nullptr) throw std::bad_alloc();
  if (!value.empty()) std::memcpy(copy, value.data(), value.size());
  *out_value = copy;
  *out_bytes = value.size();
  return DTRUN_OK;
}

// Runs `body` on the object behind `handle`.
template <class Body>
dtrun_status OnMembership(const dtrun_host* host, dtrun_membership* handle, dtrun_error* err, Body&& body) {
  return sdk::Guard(err, [&] {
    Require(host, "the host");
    Require(handle, "the dtrun_membership");
    return dtrun_status{body(*reinterpret_cast<const sdk::Membership*>(handle))};
  });
}

dtrun_status OpenMembership(const dtrun_host* host, const dtrun_comm_params* given, dtrun_membership** out,
                            dtrun_error* err) {
  return sdk::Guard(err, [&] {
    Require(host, "the host");
    Require(out, "out");
    const dtrun_comm_params raw = Read(given, "dtrun_comm_params");
    RequireRank(raw.rank, raw.size, "dtrun_comm_params.rank");
    Require(raw.kv, "dtrun_comm_params.kv");
    const sdk::CommParams params{raw.rank,
                                 raw.size,
                                 raw.host_count,
                                 raw.generation,
                                 sdk::internal::Text(raw.name),
                                 sdk::Kv(sdk::Host(host), raw.kv),
                                 sdk::Nanoseconds(raw.timeout_ns)};
    *out = reinterpret_cast<dtrun_membership*>(new sdk::Membership(params));
    return dtrun_status{DTRUN_OK};
  });
}

dtrun_status JoinMembers(const dtrun_host* host, dtrun_membership* handle, dtrun_string topic,
                         const void* value, std::uint64_t bytes, std::int64_t timeout_ns, dtrun_error* err) {
  return OnMembership(host, handle, err, [&](const sdk::Membership& membership) {
    membership.Join(Topic(topic), Value(value, bytes), sdk::Deadline(sdk::Nanoseconds(timeout_ns)));
    return DTRUN_OK;
  });
}

dtrun_status WhatPeerSaid(const dtrun_host* host, dtrun_membership* handle, dtrun_string topic,
                          std::int32_t peer, void** out_value, std::uint64_t* out_bytes, dtrun_error* err) {
  return OnMembership(host, handle, err, [&](const sdk::Membership& membership) {
    RequireRank(peer, membership.size(), "the peer");
    return Hand(host, membership.Said(Topic(topic), peer), out_value, out_bytes);
  });
}

dtrun_status LeaveMembers(const dtrun_host* host, dtrun_membership* handle, const void* value,
                          std::uint64_t bytes, dtrun_error* err) {
  return OnMembership(host, handle, err, [&](const sdk::Membership& membership) {
    membership.Leave(Value(value, bytes));
    return DTRUN_OK;
  });
}

dtrun_status WhatLeaverSaid(const dtrun_host* host, dtrun_membership* handle, std::int32_t peer,
                            void** out_value, std::uint64_t* out_bytes, dtrun_error* err) {
  return OnMembership(host, handle, err, [&](const sdk::Membership& membership) {
    RequireRank(peer, membership.size(), "the peer");
    const std::optional<std::string> last = membership.Left(peer);
    if (last) return Hand(host, *last, out_value, out_bytes);
    throw sdk::Failure(DTRUN_NOT_FOUND, sdk::RanksText({peer}) + " has not left '" + membership.name() + "'");
  });
}

dtrun_status PublishFailure(const dtrun_host* host, dtrun_membership* handle, const dtrun_error* failure,
                            dtrun_error* err) {
  return OnMembership(host, handle, err, [&](const sdk::Membership& membership) {
    Require(failure, "the failure");
    const dtrun_error copy = sdk::internal::ReadStruct(failure);
    const std::size_t size = ::strnlen(copy.message, sizeof copy.message);
    membership.PublishFailure(sdk::Failure(copy.code, std::string(copy.message, size), copy.peer));
    return DTRUN_OK;
  });
}

dtrun_status FirstFailure(const dtrun_host* host, dtrun_membership* handle, std::int32_t* out_rank,
                          dtrun_error* out_failure, dtrun_error* err) {
  return OnMembership(host, handle, err, [&](const sdk::Membership& membership) {
    const std::optional<sdk::Membership::Published> first = membership.FirstPublished();
    if (!first) throw sdk::Failure(DTRUN_NOT_FOUND, "no rank of '" + membership.name() + "' has failed");
    if (out_rank != nullptr) *out_rank = first->rank;
    membership.AsThisRankReports(*first).CopyTo(out_failure);
    return DTRUN_OK;
  });
}

void CloseMembership(const dtrun_host*, dtrun_membership* handle) {
  delete reinterpret_cast<sdk::Membership*>(handle);
}

}  // namespace

const dtrun_membership_service* Memberships() {
  static constexpr dtrun_membership_service kService{sizeof(dtrun_membership_service),
                                                     0,
                                                     &OpenMembership,
                                                     &JoinMembers,
                                                     &WhatPeerSaid,
                                                     &LeaveMembers,
                                                     &WhatLeaverSaid,
                                                     &PublishFailure,
                                                     &FirstFailure,
                                                     &CloseMembership};
  return &kService;
}

}  // namespace dtrun::services
