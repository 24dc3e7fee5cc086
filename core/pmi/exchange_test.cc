#include "core/pmi/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ExchangeTest : public ::testing::Test {
 protected:
  // "host exchange bytes", or "host exchange ! error".
  std::vector<std::string> answers_;
  Exchange exchange_{[this](int host, const std::string& name, const Result<std::string>& all) {
    answers_.push_back(std::to_string(host) + " " + name + " " + (all ? *all : "! " + all.error().text));
  }};
};

TEST_F(ExchangeTest, GivesEveryHostAllPartsInTheirOrder) {
  exchange_.Offer(2, {"a", {0, 1, 2}, "z"});
  exchange_.Offer(0, {"a", {0, 1, 2}, "x"});
  EXPECT_THAT(answers_, IsEmpty());
  exchange_.Offer(1, {"a", {0, 1, 2}, "y"});
  EXPECT_THAT(answers_, ElementsAre("0 a xyz", "1 a xyz", "2 a xyz"));
}

TEST_F(ExchangeTest, KeepsExchangesApart) {
  exchange_.Offer(0, {"a", {0, 1}, "a0"});
  exchange_.Offer(0, {"b", {0, 2}, "b0"});
  exchange_.Offer(2, {"b", {0, 2}, "b2"});
  EXPECT_THAT(answers_, ElementsAre("0 b b0b2", "2 b b0b2"));
}

TEST_F(ExchangeTest, AnswersAHostThatIsAlone) {
  exchange_.Offer(0, {"a", {0}, "mine"});
  EXPECT_THAT(answers_, ElementsAre("0 a mine"));
}

TEST_F(ExchangeTest, FailsWhatIsOpenAndWhatComesLater) {
  exchange_.Offer(0, {"a", {0, 1}, ""});
  exchange_.Fail(Error{DTRUN_ABORTED, "rank 1 has ended"});
  exchange_.Offer(1, {"b", {0, 1}, ""});
  EXPECT_THAT(answers_, ElementsAre("0 a ! rank 1 has ended", "1 b ! rank 1 has ended"));
}

TEST_F(ExchangeTest, ForgetsFailuresWithTheirGeneration) {
  exchange_.Offer(0, {"a", {0, 1}, "old"});
  exchange_.Fail(Error{DTRUN_ABORTED, "over"});
  answers_.clear();
  exchange_.Reset();
  exchange_.Offer(1, {"a", {0, 1}, "1"});
  exchange_.Offer(0, {"a", {0, 1}, "0"});
  EXPECT_THAT(answers_, ElementsAre("0 a 01", "1 a 01"));
}

TEST_F(ExchangeTest, RefusesHostsThatDisagreeOnTheMembers) {
  exchange_.Offer(0, {"a", {0, 1}, ""});
  exchange_.Offer(2, {"a", {0, 1, 2}, ""});
  EXPECT_THAT(answers_, ElementsAre("2 a ! exchange 'a' has other members on host 2",
                                    "0 a ! exchange 'a' has other members on host 2"));
}

TEST(Exchange, TakesTheNextPartFromInsideAnAnswer) {
  int answered = 0;
  Exchange* exchange = nullptr;
  Exchange chained([&](int host, const std::string&, const Result<std::string>&) {
    if (++answered == 1) exchange->Offer(host, {"next", {0}, ""});
  });
  exchange = &chained;
  chained.Offer(0, {"first", {0}, ""});
  EXPECT_EQ(answered, 2);
}

}  // namespace
}  // namespace dtrun::pmi
