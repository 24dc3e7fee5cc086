// DeepSpeed's --include and --exclude: hosts of a list, and slots of them, which are GPUs by their index.
//
//   worker-0:2,3@worker-1    slots 2 and 3 of worker-0, all slots of worker-1
//
// Pure functions and values; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/hosts/host_slots.h"

namespace dtrun::hosts {

struct Selection {
  std::vector<HostSlots> hosts;             // in the order of the list; slots: as many as were selected
  std::map<std::string, std::string> gpus;  // "2,3", by name; none of a host that the text does not name
};

// `source` says in errors where the hosts come from.
Result<Selection> Include(const std::vector<HostSlots>& hosts, std::string_view text,
                          std::string_view source);
Result<Selection> Exclude(const std::vector<HostSlots>& hosts, std::string_view text,
                          std::string_view source);

// The host of that name, which may leave out the "user@" of the list; null: none.
const HostSlots* FindHost(const std::vector<HostSlots>& hosts, std::string_view name);
// "; did you mean 'worker-0'?", or what hosts there are.
std::string HostsInstead(const std::vector<HostSlots>& hosts, std::string_view name);

// A list of devices as CUDA_VISIBLE_DEVICES has it: indices, "GPU-…" and "MIG-…", each once; or "" or "-1",
// none.
Status CheckGpuList(std::string_view list);

}  // namespace dtrun::hosts
