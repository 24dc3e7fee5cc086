#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/base/read_file.h"

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

// Opening a pipe would wait for a writer, and reading the others would never end.
TEST_F(ForeignFileTest, ReadsNoPipeNoFolderAndNoDevice) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadForeignFile(folder_ / "pipe", 10), "");
  EXPECT_EQ(ReadForeignFile(folder_, 10), "");
  EXPECT_EQ(ReadForeignFile("/dev/zero", 10), "");
}

TEST_F(ForeignFileTest, SaysWhatStandsThereInstead) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", folder_ / "zero");
  std::filesystem::create_symlink("pipe", folder_ / "link");
  const auto error = [&](const char* name) { return ReadWholeForeignFile(folder_ / name, 10).error().text; };
  const auto named = [&](const char* name) { return "'" + (folder_ / name).string() + "'"; };
  EXPECT_EQ(error("pipe"), named("pipe") + " is a pipe, where an ordinary file is expected");
  EXPECT_EQ(error("link"), named("link") + " is a pipe, where an ordinary file is expected");
  EXPECT_EQ(error("zero"), named("zero") + " is a device, where an ordinary file is expected");
  EXPECT_EQ(error("."), named(".") + " is a folder, where an ordinary file is expected");
  EXPECT_EQ(error("none"), "open " + named("none") + ": no such file or directory");
  std::ofstream(folder_ / "file") << "0123456789";
  EXPECT_EQ(*ReadWholeForeignFile(folder_ / "file", 10), "0123456789");
  std::filesystem::resize_file(folder_ / "file", std::uintmax_t{1} << 40);
  EXPECT_EQ(error("file"), named("file") + " is larger than 10, the most that dtrun reads of it");
}

}  // namespace
}  // namespace dtrun
