#include "services.h"

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "dtrun/algorithms.hpp"
#include "dtrun/kernels.hpp"
#include "dtrun/plugin/call_queue.hpp"
#include "dtrun/plugin/membership.hpp"
#include "dtrun/plugin/op.hpp"
#include "dtrun/plugin/services.hpp"
#include "sdk/services/answer.h"

namespace dtrun::services {
namespace {

using sdk::internal::Do;

// Argument checks for a plugin's calls; core does not see these calls.
//
// If `pointer` is null, throws sdk::Failure that names `what`.
void Require(const void* pointer, const char* what) {
  if (pointer == nullptr)
    throw sdk::Failure(DTRUN_INVALID_ARGUMENT, std::string(what) + " is a null pointer");
}

// A full-size copy. Throws if the struct is missing or has flags that require support; none are defined here.
template <class T>
T Read(const T* given, const char* what) {
  Require(given, what);
  const T copy = sdk::internal::ReadStruct(given);
  if ((copy.flags & DTRUN_FLAGS_MUST_UNDERSTAND) == 0) return copy;
  throw sdk::Failure(DTRUN_UNSUPPORTED, std::string(what) + " has flags " + std::to_string(copy.flags) +
                                            " that this dtrun does not know; upgrade dtrun");
}

void RequireRank(int rank, int size, const char* what) {
  if (size < 1 || rank < 0 || rank >= size) {
    throw sdk::Failure(DTRUN_INVALID_ARGUMENT, std::string(what) + " is " + std::to_string(rank) + " of " +
                                                   std::to_string(size) + " ranks");
  }
}

void RequireMeaning(std::int32_t dtype, std::int32_t reduce) {
  if (kernels::Supports(dtype, reduce)) return;
  throw sdk::Failure(DTRUN_UNSUPPORTED, "'" + std::string(sdk::ReductionName(reduce)) + "' (" +
                                            std::to_string(reduce) +
                                            ") has no meaning for elements of type '" + sdk::TypeName(dtype) +
                                            "' (" + std::to_string(dtype) + ")");
}

std::uint64_t ElementBytes(const dtrun_host*, std::int32_t dtype) { return kernels::ElementBytes(dtype); }

std::int32_t HasMeaning(const dtrun_host*, std::int32_t dtype, std::int32_t reduce) {
  return kernels::Supports(dtype, reduce) ? 1 : 0;
}

dtrun_status Reduce(const dtrun_host*, const dtrun_reduction* given, dtrun_error* err) {
  return Do(err, [&] {
    const dtrun_reduction reduction = Read(given, "the reduction");
    RequireMeaning(reduction.dtype, reduction.reduce);
    if (reduction.source_count < 1 || reduction.source_count > std::numeric_limits<std::int32_t>::max()) {
      throw sdk::Failure(DTRUN_INVALID_ARGUMENT, "a reduction of " + std::to_string(reduction.source_count) +
                                                     " sources; there must be at least 1");
    }
    if (reduction.count == 0) return;
    Require(reduction.out, "dtrun_reduction.out");
    Require(reduction.sources, "dtrun_reduction.sources");
    for (std::uint64_t i = 0; i < reduction.source_count; ++i) Require(reduction.sources[i], "a source");
    kernels::ReduceFor(reduction.dtype, reduction.reduce)(
        reduction.out, reduction.sources, static_cast<int>(reduction.source_count), reduction.count);
  });
}

dtrun_status Scale(const dtrun_host*, void* out, const void* in, std::uint64_t count, std::int32_t dtype,
                   double factor, dtrun_error* err) {
  return Do(err, [&] {
    RequireMeaning(dtype, DTRUN_PREMUL_SUM);
    if (count == 0) return;
    Require(out, "out");
    Require(in, "in");
    kernels::Scale(out, in, count, dtype, factor);
  });
}

// Checks that a communicator of `size` ranks can run the collective, without looking at its buffers.
void RequireCollective(const dtrun_op& op, int rank, int size) {
  if (!sdk::IsKnown(op.kind)) {
    throw sdk::Failure(DTRUN_UNSUPPORTED, "unknown operation: kind " + std::to_string(op.kind));
  }
  const std::string_view name = sdk::OperationName(op.kind);
  if (!sdk::IsCollective(op.kind)) {
    throw sdk::Failure(DTRUN_INVALID_ARGUMENT,
                       std::string(name) + " is a message, no collective; give it to your transport");
  }
  if (op.kind != DTRUN_BARRIER && kernels::ElementBytes(op.dtype) == 0) {
    throw sdk::Failure(DTRUN_UNSUPPORTED,
                       std::string(name) + ": unknown element type " + std::to_string(op.dtype));
  }
  if (sdk::IsReduction(op.kind)) RequireMeaning(op.dtype, op.reduce);
  if (sdk::IsRooted(op.kind)) RequireRank(op.root, size, "the root");
  const sdk::Form& form = sdk::FormOf(op.kind);
  const auto used = [&](sdk::On on) { return on == sdk::On::kEveryRank || rank == op.root; };
  if (form.send == sdk::Shape::kSendParts && used(form.send_on))
    Require(op.send_counts, "dtrun_op.send_counts");
  const bool receives_parts = form.recv == sdk::Shape::kRecvParts && used(form.recv_on);
  if (receives_parts || form.send == sdk::Shape::kRecvParts) Require(op.recv_counts, "dtrun_op.recv_counts");
}

class PluginMessenger final : public algorithms::Messenger {
 public:
  explicit PluginMessenger(const dtrun_messenger& table) : table_(table) {}

  int rank() const override { return table_.rank; }
  int size() const override { return table_.size; }

  Message Send(int peer, const void* data, std::size_t bytes) override {
    dtrun_message* message = nullptr;
    CheckAnswer("dtrun_messenger.send",
                [&](dtrun_error* e) { return table_.send(table_.context, peer, data, bytes, &message, e); });
    return message;
  }
  Message Recv(int peer, void* data, std::size_t bytes) override {
    dtrun_message* message = nullptr;
    CheckAnswer("dtrun_messenger.recv",
                [&](dtrun_error* e) { return table_.recv(table_.context, peer, data, bytes, &message, e); });
    return message;
  }
  void Wait(Message message) override {
    CheckAnswer("dtrun_messenger.wait", [&](dtrun_error* e) {
      return table_.wait(table_.context, static_cast<dtrun_message*>(message), e);
    });
  }
  void Cancel() noexcept override { table_.cancel(table_.context); }

 private:
  const dtrun_messenger table_;
};

PluginMessenger* ToMessenger(dtrun_collectives* handle) { return reinterpret_cast<PluginMessenger*>(handle); }

dtrun_status OpenCollectives(const dtrun_host*, const dtrun_messenger* given, dtrun_collectives** out,
                             dtrun_error* err) {
  return Do(err, [&] {
    Require(out, "out");
    const dtrun_messenger table = Read(given, "the messenger");
    RequireRank(table.rank, table.size, "dtrun_messenger.rank");
    Require(reinterpret_cast<const void*>(table.send), "dtrun_messenger.send");
    Require(reinterpret_cast<const void*>(table.recv), "dtrun_messenger.recv");
    Require(reinterpret_cast<const void*>(table.wait), "dtrun_messenger.wait");
    Require(reinterpret_cast<const void*>(table.cancel), "dtrun_messenger.cancel");
    *out = reinterpret_cast<dtrun_collectives*>(new PluginMessenger(table));
  });
}

dtrun_status RunCollective(const dtrun_host*, dtrun_collectives* collectives, const dtrun_op* given,
                           dtrun_error* err) {
  return Do(err, [&] {
    Require(collectives, "the dtrun_collectives");
    PluginMessenger& messenger = *ToMessenger(collectives);
    const dtrun_op op = Read(given, "the operation");
    RequireCollective(op, messenger.rank(), messenger.size());
    algorithms::RunCollective(messenger, op);
  });
}

void CloseCollectives(const dtrun_host*, dtrun_collectives* collectives) { delete ToMessenger(collectives); }

constexpr std::size_t kThreadNameBytes = 15;

// Adapts a plugin's runner to the queue.
class PluginRunner final : public sdk::Runner {
 public:
  explicit PluginRunner(const dtrun_runner& table) : table_(table) {}

  void Run(sdk::Running& running) override {
    dtrun_op op = *running.op;
    if (op.timeout_ns >= 0) op.timeout_ns = running.deadline.Left(sdk::Nanoseconds(op.timeout_ns)).count();
    CheckAnswer("dtrun_runner.run", [&](dtrun_error* e) { return table_.run(table_.context, &op, e); });
  }
  void Abandon(const sdk::Running& running) override { table_.abandon(table_.context, running.op); }

 private:
  const dtrun_runner table_;
};

// The queue must end before its runner and the text that it borrows.
struct PluginCalls {
  PluginCalls(const dtrun_host* host, const dtrun_runner& table, int size, const char* thread_name)
      : runner(table), thread(thread_name), queue(sdk::Host(host), runner, thread.c_str(), size) {}

  PluginRunner runner;
  const std::string thread;
  sdk::CallQueue queue;
};

PluginCalls* ToCalls(dtrun_calls* handle) { return reinterpret_cast<PluginCalls*>(handle); }
sdk::Request* ToRequest(dtrun_call* handle) { return reinterpret_cast<sdk::Request*>(handle); }

dtrun_status OpenCalls(const dtrun_host* host, const dtrun_runner* given, std::int32_t size,
                       const char* thread, dtrun_calls** out, dtrun_error* err) {
  return Do(err, [&] {
    Require(host, "the host");
    Require(out, "out");
    Require(thread, "the name of the thread");
    const dtrun_runner table = Read(given, "the runner");
    Require(reinterpret_cast<const void*>(table.run), "dtrun_runner.run");
    Require(reinterpret_cast<const void*>(table.abandon), "dtrun_runner.abandon");
    RequireRank(0, size, "the first rank");
    if (std::strlen(thread) > kThreadNameBytes) {
      throw sdk::Failure(DTRUN_INVALID_ARGUMENT, std::string("the thread's name '") + thread +
                                                     "' has more than 15 bytes; use a shorter one");
    }
    *out = reinterpret_cast<dtrun_calls*>(std::make_unique<PluginCalls>(host, table, size, thread).release());
  });
}

dtrun_status EnqueueCall(const dtrun_host*, dtrun_calls* calls, const dtrun_op* given, dtrun_call** out,
                         dtrun_error* err) {
  return sdk::Guard(err, [&] {
    Require(calls, "the dtrun_calls");
    Require(out, "out");
    const dtrun_op op = Read(given, "the operation");
    if (!sdk::IsKnown(op.kind) || !sdk::IsCollective(op.kind)) {
      throw sdk::Failure(DTRUN_INVALID_ARGUMENT,
                         std::string(sdk::OperationName(op.kind)) + " (kind " + std::to_string(op.kind) +
                             ") is no collective; a message must not wait in this queue");
    }
    *out = reinterpret_cast<dtrun_call*>(ToCalls(calls)->queue.Enqueue(op).release());
    return dtrun_status{DTRUN_PENDING};
  });
}

dtrun_status WaitForCall(const dtrun_host*, dtrun_call* call, std::int64_t timeout_ns, dtrun_error* err) {
  return sdk::Guard(err, [&] {
    Require(call, "the dtrun_call");
    return dtrun_status{ToRequest(call)->Wait(sdk::Nanoseconds(timeout_ns)) ? DTRUN_OK : DTRUN_PENDING};
  });
}

dtrun_status TestCall(const dtrun_host* host, dtrun_call* call, dtrun_error* err) {
  return WaitForCall(host, call, 0, err);
}

void ReleaseCall(const dtrun_host*, dtrun_call* call) { delete ToRequest(call); }
void CloseCalls(const dtrun_host*, dtrun_calls* calls) { delete ToCalls(calls); }

std::string_view Value(const void* value, std::uint64_t bytes) {
  if (bytes > 0) Require(value, "the value");
  return bytes == 0 ? std::string_view() : std::string_view(static_cast<const char*>(value), bytes);
}

std::string Topic(dtrun_string topic) {
  if (topic.size > 0 && topic.data != nullptr) return sdk::internal::Text(topic);
  throw sdk::Failure(DTRUN_INVALID_ARGUMENT, "the topic is empty");
}

// Gives `value` to the plugin in memory of the host.
void Hand(const dtrun_host* host, const std::string& value, void** out_value, std::uint64_t* out_bytes) {
  const auto* memory = sdk::Host(host).Get<dtrun_memory_service>(DTRUN_MEMORY_SERVICE);
  void* const copy = memory->allocate(host, value.size(), alignof(std::max_align_t));
  if (copy == nullptr) throw std::bad_alloc();
  if (!value.empty()) std::memcpy(copy, value.data(), value.size());
  *out_value = copy;
  *out_bytes = value.size();
}

// Runs `body` on the object behind `handle`.
template <class Body>
dtrun_status OnMembership(const dtrun_host* host, dtrun_membership* handle, dtrun_error* err, Body&& body) {
  return Do(err, [&] {
    Require(host, "the host");
    Require(handle, "the dtrun_membership");
    body(*reinterpret_cast<const sdk::Membership*>(handle));
  });
}

dtrun_status OpenMembership(const dtrun_host* host, const dtrun_comm_params* given, dtrun_membership** out,
                            dtrun_error* err) {
  return Do(err, [&] {
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
  });
}

dtrun_status JoinMembers(const dtrun_host* host, dtrun_membership* handle, dtrun_string topic,
                         const void* value, std::uint64_t bytes, std::int64_t timeout_ns, dtrun_error* err) {
  return OnMembership(host, handle, err, [&](const sdk::Membership& membership) {
    membership.Join(Topic(topic), Value(value, bytes), sdk::Deadline(sdk::Nanoseconds(timeout_ns)));
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
  return OnMembership(host, handle, err,
                      [&](const sdk::Membership& membership) { membership.Leave(Value(value, bytes)); });
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
  });
}

dtrun_status FirstFailure(const dtrun_host* host, dtrun_membership* handle, std::int32_t* out_rank,
                          dtrun_error* out_failure, dtrun_error* err) {
  return OnMembership(host, handle, err, [&](const sdk::Membership& membership) {
    const std::optional<sdk::Membership::Published> first = membership.FirstPublished();
    if (!first) throw sdk::Failure(DTRUN_NOT_FOUND, "no rank of '" + membership.name() + "' has failed");
    if (out_rank != nullptr) *out_rank = first->rank;
    membership.AsThisRankReports(*first).CopyTo(out_failure);
  });
}

void CloseMembership(const dtrun_host*, dtrun_membership* handle) {
  delete reinterpret_cast<sdk::Membership*>(handle);
}

constexpr dtrun_kernels_service kKernels{sizeof kKernels, 0, ElementBytes, HasMeaning, Reduce, Scale};
constexpr dtrun_collectives_service kCollectives{sizeof kCollectives, 0, OpenCollectives, RunCollective,
                                                 CloseCollectives};
constexpr dtrun_calls_service kCalls{sizeof kCalls, 0,           OpenCalls,   EnqueueCall,
                                     TestCall,      WaitForCall, ReleaseCall, CloseCalls};
constexpr dtrun_membership_service kMembership{sizeof kMembership, 0,
                                               OpenMembership,     JoinMembers,
                                               WhatPeerSaid,       LeaveMembers,
                                               WhatLeaverSaid,     PublishFailure,
                                               FirstFailure,       CloseMembership};

}  // namespace

const dtrun_kernels_service* Kernels() { return &kKernels; }
const dtrun_collectives_service* Collectives() { return &kCollectives; }
const dtrun_calls_service* Calls() { return &kCalls; }
const dtrun_membership_service* Memberships() { return &kMembership; }

const void* Find(const char* id) {
  const std::pair<const char*, const void*> all[] = {{DTRUN_KERNELS_SERVICE, Kernels()},
                                                     {DTRUN_COLLECTIVES_SERVICE, Collectives()},
                                                     {DTRUN_CALLS_SERVICE, Calls()},
                                                     {DTRUN_MEMBERSHIP_SERVICE, Memberships()}};
  for (const auto& [name, table] : all) {
    if (std::strcmp(name, id) == 0) return table;
  }
  return nullptr;
}

}  // namespace dtrun::services
