#include "core/node/use_meter.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/process/testing.h"

namespace dtrun::node {
namespace {

TEST(UseMeter, SaysWhatAProcessUses) {
  UseMeter meter(DTRUN_FAKE_NVML);
  std::map<pid_t, verdict::GpuUse> seen;
  ASSERT_TRUE(process::testing::Eventually([&] {
    seen = meter.Read();
    return !seen.empty();
  }));
  ASSERT_TRUE(seen.contains(::getpid()));
  const verdict::GpuUse& use = seen[::getpid()];
  EXPECT_EQ(use.index, 1);
  EXPECT_EQ(use.busy_percent, 87);
  EXPECT_EQ(use.memory, std::int64_t{1} << 30);
  EXPECT_EQ(use.Trouble(),
            "GPU 1: clock 1410 of 1980 MHz, slowed by power cap, heat; 2 uncorrected ECC errors; Xid 79");
}

TEST(UseMeter, IsSilentWithoutADriver) {
  UseMeter meter("libdtrun-there-is-no-such.so");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(meter.Read().empty());
}

TEST(GpuUse, HasNoTroubleAtRest) { EXPECT_EQ(verdict::GpuUse{}.Trouble(), ""); }

}  // namespace
}  // namespace dtrun::node
