#include "core/comm/route.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/base/error_id.h"
#include "core/comm/agreement.h"
#include "core/comm/devices.h"
#include "core/comm/plugin_call.h"
#include "core/plugin/normalise.h"
#include "dtrun/plugin/names.hpp"

namespace dtrun::comm {
namespace {

struct Names {
  std::mutex mutex;
  std::map<std::int32_t, std::string> of;
};

Names& AllNames() {
  static auto* const names = new Names;  // never freed: used until the process ends
  return *names;
}

}  // namespace

void NameKind(std::int32_t kind, const std::string& name) {
  Names& names = AllNames();
  const std::lock_guard lock(names.mutex);
  names.of[kind] = name;
}

std::string KindName(std::int32_t kind) {
  if (kind < DTRUN_DEVICE_OTHER) return sdk::DeviceKindText(kind);
  Names& names = AllNames();
  const std::lock_guard lock(names.mutex);
  const auto found = names.of.find(kind);
  return found == names.of.end() ? sdk::DeviceKindText(kind) : found->second;
}

Result<dtrun_backend_caps> CapsOf(const Carrier& carrier, Nanoseconds limit, const PluginReport& report) {
  dtrun_backend_caps caps;
  DTRUN_INIT(caps);
  PluginError error;
  const std::string who = fmt::format("backend '{}', in query_caps", carrier.name);
  const PluginCall call(who, limit, report, {}, PluginCall::DueOf(limit));
  dtrun_status asked = DTRUN_OK;
  try {
    asked = carrier.table.query_caps(carrier.instance, &caps, &error);
  } catch (...) {
    return Threw(who, report);
  }
  if (asked == DTRUN_OK) {
    plugin::RemoveOtherDraft(carrier.table, &caps);
    if (caps.device_kinds != 0 || (carrier.table.flags & plugin::kOtherDeviceDraft) == 0) return caps;
    return Error{DTRUN_UNSUPPORTED,
                 fmt::format("backend '{}' moves memory of devices only, and was built for another draft of "
                             "the device ABI; rebuild it against this dtrun",
                             carrier.name)};
  }
  return Explained(asked, error, fmt::format("what backend '{}' can do", carrier.name));
}

Status Ask(const Making& making, Route& route) {
  const Carrier& carrier = route.carrier;
  Scope& scope = route.scope;
  scope.comm = making.name;
  scope.backend = carrier.name;
  scope.rank = making.rank;
  scope.size = making.size;
  scope.device_kind = route.device_kind;
  scope.device_index = route.device_index;
  scope.query_support = carrier.table.query_support;
  scope.instance = carrier.instance;

  Result<dtrun_backend_caps> caps = CapsOf(carrier, making.Limit(), making.report);
  if (!caps) return std::move(caps).error();
  scope.caps = *caps;
  if (const std::uint32_t unknown = scope.caps.flags & DTRUN_FLAGS_MUST_UNDERSTAND; unknown != 0) {
    return Error{DTRUN_UNSUPPORTED,
                 fmt::format("backend '{}' has the capabilities {:#x}, which this dtrun would have to "
                             "understand; upgrade dtrun or install an older release of the plugin",
                             carrier.name, unknown)};
  }
  return {};
}

namespace {

std::string_view RouteName(const Route& route) { return route.OfDevice() ? "device" : "host"; }

Status CreateHere(const Making& m, dtrun_kv* kv, Route& route) {
  dtrun_comm_params params;
  DTRUN_INIT(params);
  params.rank = m.rank;
  params.size = m.size;
  params.host_count = m.host_count;
  params.host = m.node_rank;
  params.interface_name = {m.interface_name.c_str(), m.interface_name.size()};
  params.address = {m.address.c_str(), m.address.size()};
  params.local_processors = m.local_processors;
  params.generation = m.generation;
  params.name = {m.name.c_str(), m.name.size()};
  params.kv = kv;
  params.timeout_ns = m.timeout.count();
  params.hosts = m.hosts.empty() ? nullptr : m.hosts.data();
  params.local_rank = static_cast<std::int32_t>(std::count(
      m.hosts.begin(), m.hosts.begin() + std::min<std::ptrdiff_t>(m.rank, std::ssize(m.hosts)), m.node_rank));
  params.device_kind = route.device_kind;
  params.device_index = route.device_index;
  params.parent = route.OfDevice() ? nullptr : m.parent;  // a device's may be gone by now
  params.parent_ranks = params.parent == nullptr ? nullptr : m.parent_ranks.data();
  PluginError error;
  const std::string& backend = route.carrier.name;
  const std::string who = fmt::format("backend '{}', making '{}'", backend, m.name);
  const PluginCall call(
      who, m.Limit(), m.report, [&] { return WhyNotMade(m, RouteName(route)); },
      m.Due(route.carrier.extensions.plugin != nullptr));
  dtrun_status status = DTRUN_OK;
  try {
    status = route.carrier.table.comm_create(route.carrier.instance, &params, &route.comm, &error);
  } catch (...) {
    return Threw(who, m.report);
  }
  if (status != DTRUN_OK) {
    route.comm = nullptr;
    Error why = Answered(m, status, error,
                         fmt::format("rank {} joining the {} ranks of '{}' over backend '{}'", m.rank, m.size,
                                     m.name, backend));
    why.id = IdOfFailure(status);
    if (why.id != ErrorId::kNone) why.args = {{"call", "join"}, {"communicator", m.name}};
    return why;
  }
  if (route.comm == nullptr) {
    return BrokeRule(who, "returned DTRUN_OK and left *out NULL", m.report);
  }
  return {};
}

}  // namespace

Status Open(const Making& m, dtrun_kv* kv, Route& route) {
  Status made = CreateHere(m, kv, route);
  made = MadeByAll(m, RouteName(route), kv, std::move(made));
  if (!made && route.comm != nullptr) Destroy(m, route);
  return made;
}

Error Refuse(const Making& m, dtrun_kv* kv, Error why) {
  return MadeByAll(m, RouteName(Route()), kv, std::move(why)).error();
}

ErrorId IdOfFailure(dtrun_status status) {
  switch (status) {
    case DTRUN_TIMEOUT: return ErrorId::kTimeout;
    case DTRUN_REMOTE_FAILURE: return ErrorId::kPeerFailed;
    case DTRUN_MISMATCH: return ErrorId::kCallsDiffer;
    case DTRUN_ABORTED: return ErrorId::kAborted;
    default: return ErrorId::kNone;
  }
}

void Destroy(const Making& m, Route& route) {
  const std::string who = fmt::format("backend '{}', ending '{}'", route.carrier.name, m.name);
  const PluginCall call(who, m.Limit(), m.report);
  try {
    route.carrier.table.comm_destroy(std::exchange(route.comm, nullptr));
  } catch (...) {  // nothing is known of its state
    EndProcess(Threw(who, {}).text, m.report, fmt::format("backend '{}'", route.carrier.name));
  }
}

}  // namespace dtrun::comm
