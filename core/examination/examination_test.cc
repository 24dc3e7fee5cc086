#include "core/examination/examination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::examination {
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

TEST(ChooseBackend, RefusesAnswersToAnotherQuestion) {
  EXPECT_FALSE(ChooseBackend({{"node0", {{{"nccl", ""}}}}, {"node1", {}}}).ok());
}

TEST(Examination, TravelsAsText) {
  const auto question = DecodeQuestion(Encode(Question{{{"gloo", "/x/gloo.so", "{}", ""}}, 3, 4}));
  ASSERT_TRUE(question.ok());
  EXPECT_EQ(question->backends[0].path, "/x/gloo.so");
  EXPECT_EQ(question->host_count, 3);
  EXPECT_EQ(question->local_ranks, 4);
  const auto answer = DecodeAnswer(Encode(Answer{{{"gloo", "a \xff byte"}}}));
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->backends[0].why_not, HasSubstr("a "));
  EXPECT_FALSE(DecodeQuestion("[1, 2]").ok());
  EXPECT_FALSE(DecodeAnswer("").ok());
}

TEST(Examination, AnswersAQuestionThatItCannotReadWithTheError) {
  const auto answer = DecodeAnswer(Examine(std::string("nonsense")));
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().text, HasSubstr("cannot be read"));
}

TEST(Examination, APluginThatIsNotThereCannotBeUsed) {
  const Answer answer = Examine(Question{{{"gloo", "/nowhere/gloo.so", "{}", ""}}, 1, 1});
  EXPECT_EQ(answer.backends[0].why_not, "'/nowhere/gloo.so' is not there");
}

}  // namespace
}  // namespace dtrun::examination
