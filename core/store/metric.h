// Numbers that a program reports with dtrun_metric, as they travel from its rank to the root.
//
// Values; any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/wire/limits.h"

namespace dtrun::store {

inline constexpr std::size_t kMaxMetricName = 128;
inline constexpr std::size_t kMaxMetrics = 256;  // names of one process
// A value is sent within about a second. The root trusts its age no further, or one rank could fill the
// record of a day.
inline constexpr std::chrono::nanoseconds kMaxMetricAge = std::chrono::minutes(1);

// Refuses names that are none in Prometheus, or that begin with "dtrun_".
Status CheckMetricName(std::string_view name);

struct Metric {
  std::string name;
  double value = 0;
  std::optional<std::int64_t> step = {};
  std::chrono::nanoseconds age = {};  // since the program gave the value
  void Fields(auto& io) {
    io("name", name, wire::Most{kMaxMetricName});
    io("value", value);
    io("step", step);
    io("age", age, wire::Between<std::int64_t>{0, kMaxMetricAge.count()});
  }
};

// The newest value of each metric that has changed, and what the process has used.
struct Metrics {
  std::vector<Metric> values;
  std::chrono::nanoseconds processor = {};
  std::int64_t memory = 0;  // bytes
  void Fields(auto& io) {
    io("values", values, wire::Most{kMaxMetrics});
    io("processor", processor, wire::kNotNegative);
    io("memory", memory, wire::kNotNegative);
    for (const Metric& metric : values) {
      if (!CheckMetricName(metric.name)) io.Fail("has a name that no metric has");
    }
  }
};

}  // namespace dtrun::store
