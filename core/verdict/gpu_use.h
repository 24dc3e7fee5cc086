// What NVIDIA's management library says about the GPU that a rank uses.
//
// A value; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/wire/limits.h"

namespace dtrun::verdict {

struct GpuUse {
  int index = 0;            // NVML's, as in nvidia-smi
  int busy_percent = 0;     // of the last sample period, at most 1 s
  std::int64_t memory = 0;  // bytes that the rank's process has there
  int clock_mhz = 0;        // of the multiprocessors, now
  int most_mhz = 0;
  std::string slowed = {};      // "power cap, heat"; empty: by nothing
  std::int64_t ecc_errors = 0;  // uncorrected, since the driver was loaded
  std::int64_t xid = 0;         // the last critical error since the first look; 0: none

  // "GPU 3: clock 1410 of 1980 MHz, slowed by power cap; 2 uncorrected ECC errors; Xid 79"; empty: nothing is
  // wrong with it.
  std::string Trouble() const {
    std::string text;
    const auto add = [&text](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
    if (!slowed.empty()) {
      add("clock " + std::to_string(clock_mhz) + " of " + std::to_string(most_mhz) + " MHz, slowed by " +
          slowed);
    }
    if (ecc_errors > 0)
      add(std::to_string(ecc_errors) + " uncorrected ECC error" + (ecc_errors == 1 ? "" : "s"));
    if (xid > 0) add("Xid " + std::to_string(xid));
    return text.empty() ? "" : "GPU " + std::to_string(index) + ": " + text;
  }

  void Fields(auto& io) {
    io("index", index, wire::Between{0, 1 << 16});
    io("busy_percent", busy_percent, wire::Between{0, 100});
    io("memory", memory, wire::kNotNegative);
    io("clock_mhz", clock_mhz, wire::Between{0, 1 << 20});
    io("most_mhz", most_mhz, wire::Between{0, 1 << 20});
    io("slowed", slowed, wire::kMostName, wire::kPrintable);
    io("ecc_errors", ecc_errors, wire::kNotNegative);
    io("xid", xid, wire::kNotNegative);
  }
};

}  // namespace dtrun::verdict
