#include "core/stacks/source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace dtrun::stacks {
namespace {

class SourceOfTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "source-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~SourceOfTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(SourceOfTest, GivesTheLinesOfAFileAsItIsNow) {
  const std::string file = folder_ / "train.py";
  std::ofstream(file) << "first\n  sec\x1b[2Jond\n";
  const Source source = SourceOf(::getpid());
  EXPECT_EQ(source(file, 1), "first");
  EXPECT_EQ(source(file, 2), "  sec?[2Jond");
  EXPECT_EQ(source(file, 3), "");
  EXPECT_EQ(source(file, 0), "");
  std::ofstream(file) << "changed, and longer than before\n";
  EXPECT_EQ(SourceOf(::getpid())(file, 1), "changed, and longer than before");
}

TEST_F(SourceOfTest, ReadsNothingElse) {
  const std::string pipe = folder_ / "train.py";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(SourceOf(::getpid())(pipe, 1), "");  // and does not wait for a writer
  EXPECT_EQ(SourceOf(::getpid())(folder_ / "missing.py", 1), "");
}

}  // namespace
}  // namespace dtrun::stacks
