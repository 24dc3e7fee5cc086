#include "core/plugin/file_id.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "core/plugin/testing/support.h"

namespace dtrun::plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(FileId, IsTheBuildIdWhereThereIsOne) { EXPECT_EQ(*FileId("/no/file", "0f12", ""), "build-id 0f12"); }

TEST(FileId, OfAFileWithoutBuildIdIsItsSizeAndTime) {
  const testing::TempFolder folder;
  const auto path = folder.Write("x.so", "abc");
  const std::string id = *FileId(path, "", "");
  EXPECT_THAT(id, StartsWith("size 3, changed "));
  const timespec times[2] = {{1, 5}, {1, 5}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_EQ(*FileId(path, "", ""), "size 3, changed 1.000000005");
  EXPECT_THAT(FileId(folder.path() / "none", "", "").error().text, HasSubstr("no such file"));
}

// As `printf abc | sha256sum` prints it.
TEST(FileId, IsTheSha256WhereThatIsPinned) {
  const testing::TempFolder folder;
  const auto path = folder.Write("x.so", "abc");
  const std::string id = *FileId(path, "0f12", Sha256Id(std::string(64, '0')));
  EXPECT_EQ(id, Sha256Id("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"));
  EXPECT_THAT(FileId(folder.path() / "none", "", id).error().text, HasSubstr("no such file"));
}

}  // namespace
}  // namespace dtrun::plugin
