#include "core/pmi/program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <random>

namespace dtrun::pmi {
namespace {

class ProgramTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }

  Kind KindOf(const std::string& content) {
    std::ofstream(file_, std::ios::binary) << content;
    return KindOfProgram(file_);
  }

  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("dtrun-program-" + std::to_string(::getpid()));
};

TEST_F(ProgramTest, KnowsNothingOfScriptsAndOfWhatIsNotThere) {
  EXPECT_EQ(KindOf("#!/usr/bin/python3\n"), Kind::kNone);
  EXPECT_EQ(KindOf(""), Kind::kNone);
  EXPECT_EQ(KindOfProgram("/nowhere/at/all"), Kind::kNone);
  EXPECT_EQ(KindOfProgram("/"), Kind::kNone);
  EXPECT_EQ(KindOfProgram("/proc/self/exe"), Kind::kNone);
}

TEST_F(ProgramTest, KnowsLibrariesByTheirNames) {
  EXPECT_EQ(KindOfLibrary("libmpi.so.40"), Kind::kPmix);
  EXPECT_EQ(KindOfLibrary("libmpi.so.12"), Kind::kPmi1);
  EXPECT_EQ(KindOfLibrary("libmpich.so.12"), Kind::kPmi1);
  EXPECT_EQ(KindOfLibrary("libmpi_cxx.so.40"), Kind::kNone);
  EXPECT_EQ(KindOfLibrary(""), Kind::kNone);
}

// A file may contain anything.
TEST_F(ProgramTest, SurvivesBrokenFiles) {
  std::ifstream own("/proc/self/exe", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(own), std::istreambuf_iterator<char>()};
  for (const std::size_t size : {4, 63, 64, 100, 500, 4096}) {
    EXPECT_EQ(KindOf(whole.substr(0, size)), Kind::kNone) << size;
  }
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::string broken = whole.substr(0, 8192);
    for (int i = 0; i < 20; ++i) broken[4 + random() % 1020] = static_cast<char>(random());
    KindOf(broken);
  }
}

}  // namespace
}  // namespace dtrun::pmi
