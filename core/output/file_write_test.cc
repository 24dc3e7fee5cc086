#include "core/output/file_write.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <string>

#include "core/base/fd.h"
#include "core/output/testing.h"

namespace dtrun::output {
namespace {

TEST(FileWrite, ReportsAFullDisk) {
  UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(WriteAll(full.get(), "x"), ENOSPC);
  EXPECT_EQ(WriteAll(full.get(), ""), 0);
}

TEST(FileWrite, ReportsTheFileSizeLimitAndSurvivesItsSignal) {
  TempFolder folder;
  UniqueFd file(open((folder.path() / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(file);
  const FileSizeLimit limit(100);
  EXPECT_EQ(WriteAll(file.get(), std::string(90, 'x')), 0);
  EXPECT_EQ(WriteAll(file.get(), std::string(20, 'y')), EFBIG);
  EXPECT_EQ(WriteAllAt(file.get(), "z", 200), EFBIG);
  EXPECT_EQ(ReadFile(folder.path() / "file"), std::string(90, 'x') + std::string(10, 'y'));
  sigset_t pending;
  ASSERT_EQ(sigpending(&pending), 0);
  EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
}

TEST(FileWrite, WritesAtAnOffset) {
  TempFolder folder;
  UniqueFd file(open((folder.path() / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(WriteAllAt(file.get(), "world", 6), 0);
  EXPECT_EQ(WriteAllAt(file.get(), "hello ", 0), 0);
  EXPECT_EQ(ReadFile(folder.path() / "file"), "hello world");
}

}  // namespace
}  // namespace dtrun::output
