// A communicator's use of devices: opens its second route, checks buffers and streams, and makes streams.
//
// All ranks make the first call that needs the route, which opens it; then it stays open. Owned by
// dtrun_comm; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/comm/comm_state.h"

namespace dtrun::comm {

class CommDevices {
 public:
  explicit CommDevices(CommState& state) : state_(state) {}

  // The open device route, which must match kind and index; opens it on first use. `op`: what needs it; null:
  // any. `wish`: the words before the device in an error message.
  Result<Route*> RouteFor(std::int32_t kind, std::int32_t index, const std::string& wish, const dtrun_op* op);
  // Opens the route of that device if it is not open. Collective.
  Status Connect(std::int32_t kind, std::int32_t index);
  // The route of that device; an error if it is not open.
  Result<Route*> Opened(std::int32_t kind, std::int32_t index, const char* call);
  // The name of the backend that carries, or would carry, that kind of memory.
  Result<std::string_view> RouteOf(std::int32_t kind);
  bool OrdersOnHost(std::int32_t kind);
  // Asks the device's plugin about the buffers of `op`, and about its stream if there is one. Whether the
  // stream is being captured; an error if the backend cannot be captured.
  [[gnu::cold]] Result<bool> Prepare(const Route& route, const dtrun_op& op, const dtrun_stream* stream,
                                     bool wants_work) const;

  Result<dtrun_stream> CreateStream(const dtrun_stream_params& params, std::int32_t kind);
  void DestroyStream(const dtrun_stream& stream);
  // Those that are left.
  void DestroyStreams();
  // REQUIRES an open route.
  const Device& plugin() const { return *plugin_; }

 private:
  const Route* OpenRoute(std::int32_t kind) const {
    const Route* const route = state_.device();
    return route != nullptr && route->device_kind == kind ? route : nullptr;
  }
  // Connecting is a call with its own number, which all ranks keep even if it is refused. `op`: the
  // collective that needs it; null: none. Both REQUIRE connect_mutex_.
  Status ConnectLocked(const dtrun_op* op, std::int32_t kind, std::int32_t index);
  Status ConnectDevice(std::int32_t kind, std::int32_t index);
  // Publishes the connecting call to the other ranks; returns its number.
  std::uint64_t Announce(const dtrun_op* op, std::int32_t kind);
  // The route that would carry the device's memory, not open yet. Sets plugin_.
  Result<std::unique_ptr<Route>> FindDevice(std::int32_t kind, std::int32_t index);
  Result<dtrun_memory> MemoryOf(const dtrun_op& op, const void* buffer, const char* which) const;
  Status CheckMemory(const dtrun_op& op, const Route& route) const;
  Result<bool> Captures(const dtrun_op& op, const dtrun_stream& stream, const Route& route,
                        bool wants_work) const;

  CommState& state_;
  std::mutex connect_mutex_;  // guards the next two while the route is made
  int connects_ = 0;          // attempts; the same on all ranks
  const Device* plugin_ = nullptr;
  std::mutex mutex_;  // guards the next two
  std::vector<dtrun_stream> streams_;
  std::set<std::string> route_names_;  // returned by RouteOf
};

}  // namespace dtrun::comm
