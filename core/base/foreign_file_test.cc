#include "core/base/foreign_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace dtrun {
namespace {

class ForeignFileTest : public ::testing::Test {
 protected:
  ForeignFileTest() {
    std::string name = "/tmp/dtrun-foreign-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) folder_ = name;
  }
  ~ForeignFileTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(ForeignFileTest, ReadsTheFirstBytesOfAFile) {
  std::ofstream(folder_ / "file") << std::string(100'000, 'a') << "end";
  EXPECT_EQ(ReadForeignFile(folder_ / "file", 1 << 20), std::string(100'000, 'a') + "end");
  EXPECT_EQ(ReadForeignFile(folder_ / "file", 70'000), std::string(70'000, 'a'));
  EXPECT_EQ(ReadForeignFile(folder_ / "none", 10), "");
}

// An open for reading would wait for a writer, and reads of the others never end.
TEST_F(ForeignFileTest, ReadsNoPipeNoFolderAndNoDevice) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadForeignFile(folder_ / "pipe", 10), "");
  EXPECT_EQ(ReadForeignFile(folder_, 10), "");
  EXPECT_EQ(ReadForeignFile("/dev/zero", 10), "");
}

}  // namespace
}  // namespace dtrun
