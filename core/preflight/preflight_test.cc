#include "core/preflight/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::preflight {
namespace {

using ::testing::HasSubstr;

TEST(Preflight, TravelsAsText) {
  const auto request =
      DecodeRequest(Encode(Request{{{"gloo", "/x/gloo.so", "{}", "", true, false, "sha256 0f"}}, 3, 4}));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->backends[0].file_id, "sha256 0f");
  EXPECT_EQ(request->backends[0].path, "/x/gloo.so");
  EXPECT_EQ(request->host_count, 3);
  EXPECT_EQ(request->local_ranks, 4);
  const auto answer = DecodeAnswer(Encode(Answer{{{"gloo", "a \xff byte", "", {{}, {}, "build-id 0f"}}}}));
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->backends[0].why_not, HasSubstr("a "));
  EXPECT_EQ(answer->backends[0].info.file_id, "build-id 0f");
  EXPECT_FALSE(DecodeRequest("[1, 2]").ok());
  EXPECT_FALSE(DecodeAnswer("").ok());
}

TEST(Preflight, AnswersARequestThatItCannotReadWithTheError) {
  const auto answer = DecodeAnswer(RunPreflight(std::string("nonsense")));
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().text, HasSubstr("cannot be read"));
}

TEST(Preflight, APluginThatIsNotThereCannotBeUsed) {
  const Answer answer = RunPreflight(Request{{{"gloo", "/nowhere/gloo.so", "{}", ""}}, 1, 1});
  EXPECT_EQ(answer.backends[0].why_not, "'/nowhere/gloo.so' is not there");
}

}  // namespace
}  // namespace dtrun::preflight
