#include "core/job/host_clocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace dtrun::job {
namespace {

constexpr std::int64_t kAhead = 5'000'000'000;

TEST(HostClocks, EstimatesByTheShortestOfSeveralRoundTrips) {
  boost::asio::io_context loop;
  std::vector<std::uint32_t> questions;
  std::vector<verdict::fact::HostClock> found;
  HostClocks clocks(
      loop, 1,
      {[&](std::size_t, const protocol::ReadClock& question) { questions.push_back(question.number); },
       [&](std::size_t, const verdict::fact::HostClock& clock) { found.push_back(clock); }});
  for (std::size_t i = 0; found.empty() && i < 100; ++i) {
    ASSERT_EQ(questions.size(), i + 1);
    clocks.On(0, {questions.back(), protocol::WallClock() + kAhead});
  }
  ASSERT_EQ(found.size(), 1u);
  EXPECT_GT(questions.size(), 1u);
  // It was somewhere within the round trip, however long the machine took for that.
  EXPECT_NEAR(static_cast<double>(found[0].ahead_ns), static_cast<double>(kAhead),
              static_cast<double>(found[0].uncertainty_ns) + 1);
}

TEST(HostClocks, IgnoresAnswersToQuestionsThatItDidNotAsk) {
  boost::asio::io_context loop;
  std::uint32_t number = 0;
  int found = 0;
  HostClocks clocks(loop, 2,
                    {[&](std::size_t, const protocol::ReadClock& question) { number = question.number; },
                     [&](std::size_t, const verdict::fact::HostClock&) { ++found; }});
  const std::uint32_t first = number;
  for (int i = 0; i < 100; ++i) clocks.On(1, {first + 1000, 1});
  EXPECT_EQ(found, 0);
  EXPECT_EQ(number, first);
}

}  // namespace
}  // namespace dtrun::job
