// The clocks of a run's hosts, as its root measured them (core/job/host_clocks.h).
//
// Value; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace dtrun::trace {

class Clocks {
 public:
  // A measurement at `at`, on the root's clock: `host` was so far ahead of it.
  void Add(const std::string& host, std::int64_t at, std::int64_t ahead, std::int64_t uncertainty);
  // A time of the host on the root's clock. Between two measurements the difference is taken to change
  // evenly; one that is not more than its uncertainty is taken as none. A host that was not measured is taken
  // to be right.
  std::int64_t AtRoot(const std::string& host, std::int64_t time) const;
  bool Knows(const std::string& host) const { return hosts_.contains(host); }
  // For people and programs: of each host the last difference and the largest uncertainty.
  Json About() const;

 private:
  struct Measured {
    std::int64_t at = 0, ahead = 0, uncertainty = 0;
  };
  std::map<std::string, std::vector<Measured>> hosts_;
};

}  // namespace dtrun::trace
