#include <gmock/gmock.h>
#include <sys/stat.h>

#include "core/plugin/plugin_file.h"
#include "core/plugin/testing/support.h"

namespace dtrun::plugin {
namespace {

using ::testing::StartsWith;

std::string Id(const std::filesystem::path& path, const std::string& build_id, const std::string& like) {
  return *FileId(*OpenedFile::Open(path), build_id, like);
}

TEST(FileId, IsTheBuildIdAndTheTimeOfTheLastWrite) {
  const testing::TempFolder folder;
  const auto path = folder.Write("x.so", "abc");
  const timespec times[2] = {{1, 5}, {1, 5}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_EQ(Id(path, "0f12", ""), "build-id 0f12, size 3, changed 1.000000005");
  EXPECT_EQ(Id(path, "0f12", "build-id 0f12, size 4, changed 1.000000005"), Id(path, "0f12", ""));
}

// An older agent knows only the build id.
TEST(FileId, IsTheBuildIdAloneForWhoKnowsNoMore) {
  EXPECT_EQ(Id("/proc/self/exe", "0f12", "build-id 77"), "build-id 0f12");
}

TEST(FileId, OfAFileWithoutBuildIdIsItsSizeAndTime) {
  const testing::TempFolder folder;
  const auto path = folder.Write("x.so", "abc");
  const std::string id = Id(path, "", "");
  EXPECT_THAT(id, StartsWith("size 3, changed "));
  const timespec times[2] = {{1, 5}, {1, 5}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_EQ(Id(path, "", ""), "size 3, changed 1.000000005");
}

// As `printf abc | sha256sum` prints it.
TEST(FileId, IsTheSha256WhereThatIsPinned) {
  const testing::TempFolder folder;
  const auto path = folder.Write("x.so", "abc");
  const std::string id = Id(path, "0f12", Sha256Id(std::string(64, '0')));
  EXPECT_EQ(id, Sha256Id("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"));
}

}  // namespace
}  // namespace dtrun::plugin
