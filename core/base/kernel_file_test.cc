#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/base/read_file.h"

namespace dtrun {
namespace {

TEST(KernelFile, IsReadWhole) {
  const std::string status = ReadKernelFile("/proc/self/status");
  EXPECT_THAT(status, ::testing::HasSubstr("\nPid:\t" + std::to_string(::getpid()) + "\n"));
  EXPECT_TRUE(status.ends_with('\n'));
}

TEST(KernelFile, IsEmptyWhenItCannotBeRead) {
  EXPECT_EQ(ReadKernelFile("/proc/self/nothing"), "");
  EXPECT_EQ(ReadKernelFile("/proc/self"), "");
  EXPECT_EQ(FirstLineOf("/proc/self/nothing"), "");
}

TEST(KernelFile, GivesItsFirstLineWithoutTheFeed) {
  EXPECT_THAT(FirstLineOf("/proc/self/status"), ::testing::StartsWith("Name:\t"));
  EXPECT_EQ(FirstLineOf("/proc/self/status").find('\n'), std::string::npos);
}

TEST(KernelFile, EntriesComeByName) {
  EXPECT_THAT(EntriesOf("/proc/self"),
              ::testing::IsSupersetOf<std::filesystem::path>({"/proc/self/fd", "/proc/self/status"}));
  const auto entries = EntriesOf("/proc/self");
  EXPECT_TRUE(std::is_sorted(entries.begin(), entries.end()));
  EXPECT_THAT(EntriesOf("/proc/self/status"), ::testing::IsEmpty());
}

}  // namespace
}  // namespace dtrun
