// Any bytes as a list of hosts: parsing returns, and what it returns can be resolved.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>

#include "core/hosts/allocation.h"
#include "core/hosts/hostfile.h"
#include "core/hosts/slurm_list.h"

namespace {

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
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
  if (const auto names = hosts::ExpandNodelist(text); names.ok()) {
    for (const std::string& name : *names) Require(hosts::CheckHostName(name).ok(), "nodes can be resolved");
  }
  if (const auto counts = hosts::ExpandCounts(text); counts.ok()) {
    const auto again = hosts::ExpandCounts(hosts::CompressCounts(*counts));
    Require(again.ok() && *again == *counts, "counts survive compression");
  }
  for (const char* name : {"SLURM_JOB_NODELIST", "CLUSTER_SPEC", "PET_NNODES", "AZ_BATCH_MASTER_NODE"}) {
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
