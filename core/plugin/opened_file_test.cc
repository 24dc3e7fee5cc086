#include <dlfcn.h>
#include <gmock/gmock.h>

#include <fstream>

#include "core/plugin/plugin_file.h"
#include "core/plugin/testing/support.h"

namespace dtrun::plugin {
namespace {

using ::testing::HasSubstr;

TEST(OpenedFile, KnowsTheLibraryThatWasLoadedFromIt) {
  const testing::TempFolder folder;
  const auto path = folder.Copy("demo"), other = folder.Copy("demo", "other");
  for (int round = 0; round < 2; ++round) {  // descriptor numbers are reused
    for (const auto& file : {path, other}) {
      const auto opened = OpenedFile::Open(file);
      ASSERT_TRUE(opened.ok()) << opened.error().text;
      void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
      ASSERT_NE(library, nullptr) << ::dlerror();
      EXPECT_TRUE(opened->IsLoadedAs(library)) << file;
    }
  }
}

// From examination until loading the path refers to another file, then back.
TEST(OpenedFile, IsNotTheLibraryThatHadItsNameForAWhile) {
  const testing::TempFolder folder;
  const auto path = folder.Copy("demo"), other = folder.Copy("demo", "other"), kept = folder.path() / "kept";
  const auto opened = OpenedFile::Open(path);
  ASSERT_TRUE(opened.ok());
  std::filesystem::rename(path, kept);
  std::filesystem::rename(other, path);
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  std::filesystem::rename(kept, path);
  ASSERT_NE(library, nullptr) << ::dlerror();
  EXPECT_FALSE(opened->IsLoadedAs(library));
}

TEST(OpenedFile, SeesThatItWasChanged) {
  const testing::TempFolder folder;
  const auto path = folder.Write("x.so", "abc");
  const auto opened = OpenedFile::Open(path);
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(opened->IsUnchanged());
  const timespec old[2] = {{1, 5}, {1, 5}};
  ASSERT_EQ(::futimens(opened->descriptor(), old), 0);
  EXPECT_FALSE(opened->IsUnchanged());
}

// Detected before loading, so before any of its code runs.
TEST(OpenedFile, SeesThatItsNameLeadsElsewhere) {
  const testing::TempFolder folder;
  const auto path = folder.Write("x.so", "abc"), other = folder.Write("y.so", "abc");
  const auto opened = OpenedFile::Open(path);
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(opened->IsStillAt(path));
  EXPECT_FALSE(opened->IsStillAt(other));
  std::filesystem::rename(other, path);
  EXPECT_FALSE(opened->IsStillAt(path));
  std::filesystem::remove(path);
  EXPECT_FALSE(opened->IsStillAt(path));
}

TEST(OpenedFile, SeesThatItWasWrittenToInPlace) {
  const testing::TempFolder folder;
  const auto path = folder.Write("x.so", "abc");
  const auto opened = OpenedFile::Open(path);
  ASSERT_TRUE(opened.ok());
  folder.Write("x.so", "abcd");
  EXPECT_FALSE(opened->IsStillAt(path));
}

TEST(OpenedFile, NamesAFileThatIsNotThere) {
  const testing::TempFolder folder;
  EXPECT_THAT(OpenedFile::Open(folder.path() / "none").error().text, HasSubstr("no such file"));
}

}  // namespace
}  // namespace dtrun::plugin
