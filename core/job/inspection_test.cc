#include "core/job/inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::job {
namespace {

using ::testing::ElementsAre;

// Keeps the requests.
class Asked final : public protocol::Host {
 public:
  void Do(const protocol::Command& command) override {
    if (const auto* const inspect = std::get_if<protocol::Inspect>(&command)) requests.push_back(*inspect);
  }
  std::vector<protocol::Inspect> requests;
};

class InspectionTest : public ::testing::Test {
 protected:
  Inspection::Done Note(const std::string& who) {
    return [this, who](const protocol::Inspected& all) {
      told_.push_back(who + (all.ranks.empty() ? " nothing" : ""));
    };
  }
  void Wish(const std::string& who, std::vector<int> native) {
    inspection_.Wish([this] { return Inspection::Hosts{{0, &host_}}; }, Note(who), {.closely = std::move(native)});
  }
  void AnswerLast() {
    protocol::Inspected inspected;
    inspected.number = host_.requests.back().number;
    inspected.ranks.emplace_back();
    inspection_.Answer(0, inspected);
  }

  boost::asio::io_context loop_;
  Asked host_;
  Inspection inspection_{loop_};
  std::vector<std::string> told_;
};

TEST_F(InspectionTest, AnswersAllWhoWaitedWithOneLook) {
  Wish("first", {});
  Wish("second", {1});
  Wish("third", {2, 1});
  ASSERT_EQ(host_.requests.size(), 1U);
  AnswerLast();
  ASSERT_EQ(host_.requests.size(), 2U);
  EXPECT_THAT(host_.requests[1].closely, ElementsAre(1, 2));
  AnswerLast();
  EXPECT_THAT(told_, ElementsAre("first", "second", "third"));
  EXPECT_EQ(host_.requests.size(), 2U);
}

// Native stacks of a user's look are not begun again, or a job that is looked at every second would be read
// for ever.
TEST_F(InspectionTest, AVerdictsLookAnswersTheUserWhomItInterrupts) {
  Wish("user", {0});
  inspection_.Begin({{0, &host_}}, Note("verdict"));
  ASSERT_EQ(host_.requests.size(), 2U);
  EXPECT_THAT(host_.requests[1].closely, ElementsAre());
  AnswerLast();
  EXPECT_THAT(told_, ElementsAre("verdict", "user"));
  EXPECT_EQ(host_.requests.size(), 2U);
}

TEST_F(InspectionTest, TellsUsersNothingOnceTheGenerationIsOver) {
  Wish("first", {});
  Wish("second", {});
  inspection_.Cancel();
  EXPECT_THAT(told_, ElementsAre("first nothing", "second nothing"));
}

}  // namespace
}  // namespace dtrun::job
