// Any bytes as a list of hosts: parsing returns, and what it returns can be resolved.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>

#include "core/hosts/allocation.h"
#include "core/hosts/hostfile.h"
#include "core/hosts/selection.h"
#include "launchers/schedulers/reading.h"
#include "tests/fuzz/target.h"

namespace hosts_fuzz {

namespace hosts = dtrun::hosts;

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void CheckHosts(const std::vector<hosts::HostSlots>& hosts) {
  std::set<std::string> names;
  for (const auto& host : hosts) {
    Require(hosts::CheckHostName(host.name).ok(), "names can be resolved");
    Require(names.insert(host.name).second, "hosts stand once");
    Require(!host.slots || (*host.slots >= 1 && *host.slots <= hosts::kMaxSlots), "slots are in range");
  }
  Require(hosts.size() <= hosts::kMaxHosts, "lists are bounded");
}

// deepspeed's --include and --exclude.
void CheckSelections(const std::string& text) {
  const std::vector<hosts::HostSlots> listed = {{"a", 4}, {"b", 2}, {"me@c", {}}, {"fe80::1", 1}};
  for (const auto& selected : {hosts::Include(listed, text, "x"), hosts::Exclude(listed, text, "x")}) {
    if (!selected.ok()) continue;
    Require(!selected->hosts.empty(), "a selection has a host");
    CheckHosts(selected->hosts);
    for (const auto& [name, gpus] : selected->gpus) {
      Require(hosts::FindHost(selected->hosts, name) != nullptr, "GPUs are those of a host that is selected");
      Require(!gpus.empty() && hosts::CheckGpuList(gpus).ok(), "slots are a list of GPUs");
    }
  }
}

// Lines of NAME=VALUE.
hosts::Environment Variables(const std::string& text) {
  hosts::Environment environment;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (equals != std::string::npos) environment[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return environment;
}

// Those that plugins read.
void CheckLists(const std::string& text) {
  namespace schedulers = dtrun::schedulers;
  try {
    const std::vector<std::string> names = schedulers::ExpandNodelist(text);
    Require(names.size() <= schedulers::kMaxHosts, "lists are bounded");
    for (const std::string& name : names) Require(hosts::CheckHostName(name).ok(), "nodes can be resolved");
  } catch (const dtrun::sdk::Failure& failure) {
    Require(failure.code() == DTRUN_INVALID_ARGUMENT, "a list that is none is refused");
  }
  try {
    const std::vector<int> counts = schedulers::ExpandCounts(text);
    Require(schedulers::ExpandCounts(schedulers::CompressCounts(counts)) == counts,
            "counts survive compression");
  } catch (const dtrun::sdk::Failure& failure) {
    Require(failure.code() == DTRUN_INVALID_ARGUMENT, "counts that are none are refused");
  }
  if (schedulers::ReadHostList(text))
    Require(!schedulers::ReadResourceConfig(text), "a list is not an object");
}

DTRUN_FUZZ_TARGET(hosts)(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto host = hosts::ParseHost(text); host.ok()) {
    CheckHosts({*host});
    const auto again = hosts::ParseHost(hosts::ToText(*host));
    Require(again.ok() && *again == *host, "hosts survive being written");
  }
  if (const auto hosts = hosts::ParseHostfile(text, "f"); hosts.ok()) {
    Require(!hosts->empty(), "a hostfile has a host");
    CheckHosts(*hosts);
  } else {
    Require(hosts.error().text.starts_with("f:"), "errors have a place");
  }
  CheckLists(text);
  CheckSelections(text);
  for (const char* name : {"CLUSTER_SPEC", "PET_NNODES", "AZ_BATCH_MASTER_NODE"}) {
    const auto allocation = hosts::FromEnvironment({{name, text}}, "auto");
    if (allocation.ok()) CheckHosts(allocation->hosts);
  }
  const hosts::Environment environment = Variables(text);
  for (const hosts::Platform& platform : hosts::Platforms()) {
    const auto allocation = hosts::FromEnvironment(environment, platform.name);
    if (!allocation.ok()) continue;
    CheckHosts(allocation->hosts);
    Require(allocation->count.min >= 1 && allocation->count.max >= allocation->count.min, "there are hosts");
  }
  return 0;
}

}  // namespace hosts_fuzz
