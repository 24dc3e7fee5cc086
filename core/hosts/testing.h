// Fake launchers for tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/hosts/launchers.h"

namespace dtrun::hosts::testing {

// Each finds the allocation set here, and connects if it is listed so.
class FakeLaunchers final : public Launchers {
 public:
  struct One {
    Result<Allocation> finds = Error{DTRUN_UNSUPPORTED, "it finds no hosts"};
    bool connects = false;
  };
  std::map<std::string, One> all;
  int asked = 0;  // calls of FindHosts

  std::vector<std::string> With(Ability ability) override {
    std::vector<std::string> names;
    for (const auto& [name, one] : all) {
      if (Can(one, ability)) names.push_back(name);
    }
    return names;
  }
  Result<bool> Has(const std::string& name, Ability ability) override {
    return all.contains(name) && Can(all[name], ability);
  }
  Result<Allocation> FindHosts(const std::string& name, const Environment&) override {
    ++asked;
    Result<Allocation> found = all[name].finds;
    if (!found) return found;
    found->platform = name;
    if (all[name].connects) found->connect = name;
    return found;
  }
  Result<std::vector<StartCommand>> Connect(const std::string&, const std::vector<std::string>&,
                                            const std::vector<std::string>&) override {
    return Error{DTRUN_UNSUPPORTED, "a test connects to nothing"};
  }

 private:
  static bool Can(const One& one, Ability ability) {
    if (ability == Ability::kConnect) return one.connects;
    return one.finds || one.finds.error().code != DTRUN_UNSUPPORTED;
  }
};

// A batch job with these hosts.
inline Allocation Batch(std::vector<HostSlots> hosts) {
  Allocation out;
  const int count = static_cast<int>(hosts.size());
  out.hosts = std::move(hosts);
  out.count = {count, count};
  out.evidence = "BATCH_JOB";
  return out;
}

inline Error NotThere() { return {DTRUN_NOT_FOUND, "BATCH_JOB is unset"}; }

}  // namespace dtrun::hosts::testing
