#include "core/binding/machine.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>

#include "dtrun/plugin/environment.hpp"

namespace dtrun::binding {
namespace {

using Handle = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;

Result<Handle> Load(const char* synthetic) {
  // hwloc opens every plugin it has (OpenGL, OpenCL, CUDA) before it can be told to use none: 3 ms of
  // a launch that takes 12.
  const sdk::KeepEnvironment environment;
  ::setenv("HWLOC_PLUGINS_PATH", "/dev/null", 1);
  hwloc_topology_t raw = nullptr;
  if (::hwloc_topology_init(&raw) != 0) return Error::System("prepare hwloc", errno);
  Handle handle(raw, &hwloc_topology_destroy);
  ::hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  ::hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  ::hwloc_topology_set_type_filter(raw, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  // NUMA nodes inside a socket are children of groups.
  ::hwloc_topology_set_type_filter(raw, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
#if HWLOC_API_VERSION >= 0x00020100
  // It would bind this thread to each processor in turn, to query what the system has already reported.
  ::hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
#endif
  if (synthetic != nullptr && ::hwloc_topology_set_synthetic(raw, synthetic) != 0)
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("hwloc cannot imagine '{}'", synthetic)};
  if (::hwloc_topology_load(raw) != 0)
    return Error::System("read this machine's processors with hwloc", errno);
  return handle;
}

// The processors in `allowed`, grouped by core.
Topology Gather(hwloc_topology_t topology, hwloc_const_cpuset_t allowed) {
  std::map<unsigned, Core> cores;  // by the position of a core's first processor in hwloc's order
  const int count = ::hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
  for (int i = 0; i < count; ++i) {
    const hwloc_obj_t pu = ::hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, static_cast<unsigned>(i));
    if (::hwloc_bitmap_isset(allowed, pu->os_index) == 0) continue;
    const hwloc_obj_t core = ::hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
    const hwloc_obj_t socket = ::hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, pu);
    // A virtual machine may not report which processors share a core.
    const unsigned place = core == nullptr ? pu->logical_index : core->first_child->logical_index;
    Core& out = cores[place];
    out.socket = socket == nullptr ? 0 : static_cast<int>(socket->os_index);
    out.numa = std::max(0, pu->nodeset == nullptr ? 0 : ::hwloc_bitmap_first(pu->nodeset));
    out.processors.push_back(static_cast<int>(pu->os_index));
  }
  Topology out;
  for (auto& [place, core] : cores) {
    std::ranges::sort(core.processors);
    out.cores.push_back(std::move(core));
  }
  // With interleaved numbers, cores of two NUMA nodes alternate in one socket.
  std::ranges::stable_sort(out.cores, {}, [](const Core& core) { return std::pair(core.socket, core.numa); });
  return out;
}

}  // namespace

bool KnowsMachine() { return true; }

Result<Topology> ReadMachine() {
  cpu_set_t mine;
  // hwloc would try larger and larger sets for ever.
  if (::sched_getaffinity(0, sizeof mine, &mine) != 0 && errno != EINVAL)
    return Error::System("read the affinity mask that dtrun was given", errno);
  auto handle = Load(nullptr);
  if (!handle) return handle.error();
  const Bitmap mask(::hwloc_bitmap_alloc(), &hwloc_bitmap_free);
  if (::hwloc_get_cpubind(handle->get(), mask.get(), HWLOC_CPUBIND_THREAD) != 0)
    return Error::System("read the affinity mask that dtrun was given", errno);
  return Gather(handle->get(), mask.get());
}

Result<Topology> ImagineMachine(const std::string& synthetic) {
  auto handle = Load(synthetic.c_str());
  if (!handle) return handle.error();
  return Gather(handle->get(), ::hwloc_topology_get_topology_cpuset(handle->get()));
}

}  // namespace dtrun::binding
