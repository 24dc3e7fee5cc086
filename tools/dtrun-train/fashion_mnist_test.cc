#include "tools/dtrun-train/fashion_mnist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/dtrun-train/idx_builder.h"
#include "tools/dtrun-train/scratch_folder.h"

namespace dtrun::train {
namespace {

using ::testing::HasSubstr;

class FashionMnistTest : public ::testing::Test {
 protected:
  FashionMnistTest() {
    Write("train", 3, 3, "\x01\x02\x03");
    Write("t10k", 2, 2, "\x04\x09");
  }
  void Write(const std::string& prefix, std::uint32_t images, std::uint32_t labels, const std::string& values,
             std::uint32_t side = kImageSide) {
    WriteGz(folder_.file(prefix + "-images-idx3-ubyte.gz"),
            Idx({images, side, side}, std::string(images * side * side, 'x')));
    WriteGz(folder_.file(prefix + "-labels-idx1-ubyte.gz"), Idx({labels}, values));
  }
  std::string Error() {
    const Result<FashionMnist> data = LoadFashionMnist(folder_.path());
    return data ? "no error" : data.error().text;
  }
  ScratchFolder folder_;
};

TEST_F(FashionMnistTest, LoadsBothParts) {
  const Result<FashionMnist> data = LoadFashionMnist(folder_.path());
  ASSERT_TRUE(data) << data.error().text;
  EXPECT_EQ(data->train.size(), 3U);
  EXPECT_EQ(data->train.pixels.size(), 3U * kImagePixels);
  EXPECT_EQ(data->test.size(), 2U);
  EXPECT_EQ(data->test.labels[1], 9);
}

TEST_F(FashionMnistTest, RefusesImagesOfAnotherSize) {
  Write("train", 3, 3, "\x01\x02\x03", 32);
  EXPECT_THAT(Error(), HasSubstr("images of 32 x 32 pixels, expected 28 x 28"));
}

TEST_F(FashionMnistTest, RefusesLabelsThatDoNotMatchTheImages) {
  Write("t10k", 2, 3, "\x01\x02\x03");
  EXPECT_THAT(Error(), HasSubstr("has 3 labels, but"));
}

TEST_F(FashionMnistTest, RefusesALabelOutsideTheClasses) {
  Write("t10k", 2, 2, "\x01\x0a");
  EXPECT_THAT(Error(), HasSubstr("label 10 of image 1, expected 0 to 9"));
}

TEST_F(FashionMnistTest, NamesTheFileThatIsMissing) {
  std::filesystem::remove(folder_.file("t10k-labels-idx1-ubyte.gz"));
  EXPECT_THAT(Error(), HasSubstr("t10k-labels-idx1-ubyte.gz': no such file"));
}

}  // namespace
}  // namespace dtrun::train
