#include "core/plan/python.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace dtrun::plan {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct Python : ::testing::Test {
  void SetUp() override { fs::create_directories(root); }
  void TearDown() override { fs::remove_all(root); }
  const fs::path root = fs::temp_directory_path() / ("dtrun-python-test-" + std::to_string(::getpid()));
};

TEST_F(Python, FindsTheShimOfAWheelAndOfAPrefix) {
  for (const auto& [bin, shim] : {std::pair{"dtrun/native/bin", "dtrun/horovod/shim"},
                                  std::pair{"usr/bin", "usr/lib/python3/dist-packages/dtrun/horovod/shim"}}) {
    fs::create_directories(root / shim / "horovod");
    const auto found = HorovodShim(root / bin);
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_EQ(*found, root / shim);
  }
}

TEST_F(Python, SaysWhereItLookedForTheShim) {
  const auto found = HorovodShim(root / "opt/bin");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().text, HasSubstr((root / "horovod/shim").string()));
  EXPECT_THAT(found.error().text,
              HasSubstr((root / "opt/lib/python3/dist-packages/dtrun/horovod/shim").string()));
  EXPECT_THAT(found.error().text, HasSubstr("install dtrun with pip"));
}

TEST_F(Python, PutsAFolderBeforeWhatARankHasOrInherits) {
  ProcessVariables own;
  PutFirstOnPythonPath("/shim", {}, &own);
  EXPECT_EQ(own["PYTHONPATH"], "/shim");
  own = {};
  PutFirstOnPythonPath("/shim", {{"PYTHONPATH", "/a:/b"}}, &own);
  EXPECT_EQ(own["PYTHONPATH"], "/shim:/a:/b");
  own = {{"PYTHONPATH", "/c"}};
  PutFirstOnPythonPath("/shim", {{"PYTHONPATH", "/a"}}, &own);
  EXPECT_EQ(own["PYTHONPATH"], "/shim:/c");
}

}  // namespace
}  // namespace dtrun::plan
