#include "core/preflight/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::preflight {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ByHost = std::vector<std::pair<std::string, Answer>>;

TEST(ChooseBackend, TakesTheFirstThatNoHostObjectsTo) {
  const ByHost hosts = {{"node0", {{{"nccl", ""}, {"ucx", "no libucp"}, {"gloo", ""}}}},
                        {"node1", {{{"nccl", "no GPU"}, {"ucx", "no libucp"}, {"gloo", ""}}}}};
  const auto choice = ChooseBackend(hosts);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->index, 2u);
  EXPECT_THAT(choice->passed_over,
              ElementsAre("nccl cannot be used: on node1: no GPU", "ucx cannot be used: no libucp"));
}

TEST(ChooseBackend, SaysWhyNoneWillDo) {
  const auto choice = ChooseBackend({{"node0", {{{"nccl", "no GPU"}, {"ucx", "no libucp"}}}}});
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(
      choice.error().text,
      "none of the backends in backend.name can be used; nccl cannot be used: no GPU; ucx cannot be used: "
      "no libucp");
}

TEST(ChooseBackend, RefusesAnswersToAnotherRequest) {
  EXPECT_FALSE(ChooseBackend({{"node0", {{{"nccl", ""}}}}, {"node1", {}}}).ok());
}

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
