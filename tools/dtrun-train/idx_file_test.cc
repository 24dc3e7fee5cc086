#include "tools/dtrun-train/idx_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tools/dtrun-train/idx_builder.h"
#include "tools/dtrun-train/scratch_folder.h"

namespace dtrun::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class IdxFile : public ::testing::Test {
 protected:
  std::string ErrorOf(int dimensions) {
    const Result<IdxArray> array = ReadIdx(path_, dimensions);
    return array ? "no error" : array.error().text;
  }
  ScratchFolder folder_;
  std::string path_ = folder_.file("a.gz");
};

TEST_F(IdxFile, ReadsDimensionsAndBytes) {
  WriteGz(path_, Idx({2, 1, 3}, "abcdef"));
  const Result<IdxArray> array = ReadIdx(path_, 3);
  ASSERT_TRUE(array) << array.error().text;
  EXPECT_THAT(array->dims, ElementsAre(2, 1, 3));
  EXPECT_THAT(array->data, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
}

TEST_F(IdxFile, NamesAMissingFileAndThePackageThatHasIt) {
  EXPECT_THAT(ErrorOf(1), AllOf(HasSubstr("open '" + path_ + "': no such file or directory"),
                                HasSubstr("apt-get install dataset-fashion-mnist")));
}

TEST_F(IdxFile, RefusesAnEmptyFile) {
  std::ofstream(path_).flush();
  EXPECT_THAT(ErrorOf(1), HasSubstr("'" + path_ + "': the file ends after 0 of 4 bytes of the magic number"));
}

TEST_F(IdxFile, RefusesAWrongMagicNumber) {
  WriteGz(path_, Idx({4}, "abcd"));
  EXPECT_THAT(ErrorOf(3), HasSubstr("the magic number is 0x00000801, expected 0x00000803"));
}

TEST_F(IdxFile, RefusesDataShorterThanAnnounced) {
  WriteGz(path_, Idx({10}, "abcd"));
  EXPECT_THAT(ErrorOf(1), HasSubstr("the file ends after 4 of 10 bytes of data"));
}

TEST_F(IdxFile, RefusesDataLongerThanAnnounced) {
  WriteGz(path_, Idx({3}, "abcd"));
  EXPECT_THAT(ErrorOf(1), HasSubstr("more than the 3 bytes"));
}

TEST_F(IdxFile, RefusesATruncatedGzipStream) {
  std::string noise;
  for (unsigned i = 0; i < 5000; ++i) noise += static_cast<char>((i * 2654435761U) >> 13);
  WriteGz(path_, Idx({5000}, noise));
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2);
  EXPECT_THAT(ErrorOf(1),
              AllOf(HasSubstr(path_), HasSubstr("of 5000 bytes of data"), HasSubstr("--reinstall")));
}

TEST_F(IdxFile, RefusesADamagedGzipStream) {
  WriteGz(path_, Idx({4}, "abcd"));
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-8, std::ios::end);  // the checksum
  file.write("\x12\x34\x56\x78", 4);
  file.close();
  EXPECT_THAT(ErrorOf(1), HasSubstr("incorrect data check"));
}

TEST_F(IdxFile, RefusesAbsurdDimensionsWithoutAllocating) {
  WriteGz(path_, Idx({0xFFFFFFFFU, 0xFFFFFFFFU, 0xFFFFFFFFU}, ""));
  EXPECT_THAT(ErrorOf(3), HasSubstr("empty or above 1 GiB"));
  WriteGz(path_, Idx({0}, ""));
  EXPECT_THAT(ErrorOf(1), HasSubstr("empty or above 1 GiB"));
}

TEST_F(IdxFile, SaysWhyAFolderCannotBeRead) {
  path_ = folder_.path();
  EXPECT_THAT(ErrorOf(1), HasSubstr("is a directory"));
}

}  // namespace
}  // namespace dtrun::train
