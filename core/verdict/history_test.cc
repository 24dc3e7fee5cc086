#include "core/verdict/history.h"

#include <gtest/gtest.h>

#include <csignal>

#include "core/base/json.h"
#include "core/verdict/verdict.h"

namespace dtrun::verdict {
namespace {

Facts Generation(std::uint64_t number, int interrupt = 0) {
  Facts facts;
  facts.generation = number;
  facts.interrupt = interrupt;
  return facts;
}

TEST(History, KeepsTheFirstAndTheLatestOfManyGenerations) {
  History history;
  constexpr std::uint64_t kCount = 10'000;
  for (std::uint64_t i = 0; i < kCount; ++i) history.Add(Generation(i));
  EXPECT_EQ(history.first().size(), History::kFirst);
  EXPECT_EQ(history.latest().size(), History::kLatest);
  EXPECT_EQ(history.omitted(), kCount - History::kFirst - History::kLatest);
  EXPECT_EQ(history.first().back().generation, History::kFirst - 1);
  EXPECT_EQ(history.latest().front().generation, kCount - History::kLatest);
  EXPECT_EQ(history.last().generation, kCount - 1);

  const auto json = ParseJson(VerdictJson(history));
  EXPECT_EQ(json["generation"], kCount - 1);
  EXPECT_EQ(json["generations"].size(), History::kFirst + History::kLatest);
  EXPECT_EQ(json["generations_omitted"], history.omitted());
}

TEST(History, OmitsNothingOfAFew) {
  const History history = {Generation(0), Generation(1)};
  EXPECT_EQ(history.first().size(), 2u);
  EXPECT_EQ(history.omitted(), 0u);
}

TEST(History, TakesTheLaterWordOnAGeneration) {
  for (const std::uint64_t count : {2u, 300u}) {
    History history;
    for (std::uint64_t i = 0; i < count; ++i) history.Add(Generation(i));
    history.Add(Generation(count - 1, SIGINT));
    EXPECT_EQ(history.first().size() + history.latest().size() + history.omitted(), count);
    EXPECT_EQ(history.last().interrupt, SIGINT);
    EXPECT_EQ((history.latest().empty() ? history.first() : history.latest()).back().interrupt, SIGINT);
  }
}

}  // namespace
}  // namespace dtrun::verdict
