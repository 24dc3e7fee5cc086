#include "tools/dtrun-train/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tools/dtrun-train/scratch_folder.h"

namespace dtrun::train {
namespace {

using ::testing::HasSubstr;

TEST(AtomicFile, ReadsBackWhatWasWritten) {
  const ScratchFolder folder;
  const std::string content("a\0b\n", 4);
  ASSERT_TRUE(WriteFileAtomically(folder.file("x"), content));
  EXPECT_EQ(ReadFile(folder.file("x")).value(), content);
}

TEST(AtomicFile, ReplacesAndLeavesNoTemporaryFile) {
  const ScratchFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.file("x"), "a longer first version"));
  ASSERT_TRUE(WriteFileAtomically(folder.file("x"), "second"));
  EXPECT_EQ(ReadFile(folder.file("x")).value(), "second");
  EXPECT_FALSE(std::filesystem::exists(folder.file("x.tmp")));
}

TEST(AtomicFile, KeepsTheOldFileWhenTheDiskIsFull) {
  const ScratchFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.file("x"), "old"));
  std::filesystem::create_symlink("/dev/full", folder.file("x.tmp"));
  const Status status = WriteFileAtomically(folder.file("x"), "new");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().text, HasSubstr("no space left on device"));
  EXPECT_EQ(ReadFile(folder.file("x")).value(), "old");
}

TEST(AtomicFile, NamesAMissingFolder) {
  const Status status = WriteFileAtomically("/nowhere/at/all", "x");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().text, HasSubstr("create '/nowhere/at/all.tmp': no such file or directory"));
}

TEST(AtomicFile, NamesAMissingFile) {
  EXPECT_THAT(ReadFile("/nowhere").error().text, HasSubstr("open '/nowhere': no such file or directory"));
}

}  // namespace
}  // namespace dtrun::train
