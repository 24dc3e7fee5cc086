#include "tools/bench/program/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The available backends depend on the build; tests/test_bench.py covers their errors.
std::string ErrorOf(const Arguments& arguments) {
  const Result<Request> checked = Check(arguments);
  return checked.ok() ? "" : checked.error().text;
}

TEST(BenchOptions, NumbersOutOfRangeAreNamedWithTheRange) {
  Arguments given;
  given.ranks = 0;
  EXPECT_THAT(ErrorOf(given), AllOf(HasSubstr("--np 0"), HasSubstr("1 to 4096")));
  given = {};
  given.rounds = 0;
  EXPECT_THAT(ErrorOf(given), HasSubstr("--rounds 0"));
  given = {};
  given.warmup = -1;
  EXPECT_THAT(ErrorOf(given), HasSubstr("--warmup -1"));
  given = {};
  given.seconds = 0;
  EXPECT_THAT(ErrorOf(given), HasSubstr("--seconds 0"));
  given = {};
  given.factor = -2;
  EXPECT_THAT(ErrorOf(given), HasSubstr("factor"));
}

TEST(BenchOptions, UnknownWordsAreNamed) {
  Arguments given;
  given.operation = "allredcue";
  EXPECT_THAT(ErrorOf(given), HasSubstr("'allredcue'"));
  given = {};
  given.dtype = "float31";
  EXPECT_THAT(ErrorOf(given), HasSubstr("'float31'"));
  given = {};
  given.sizes = "64:8";
  EXPECT_THAT(ErrorOf(given), HasSubstr("'64:8'"));
  given = {};
  given.backends = "golo";
  EXPECT_THAT(ErrorOf(given), HasSubstr("'golo'"));
}

TEST(BenchOptions, NobodySendsToItself) {
  Arguments given;
  given.operation = "sendrecv";
  given.ranks = 1;
  EXPECT_THAT(ErrorOf(given), HasSubstr("--np 2"));
}

}  // namespace
}  // namespace dtrun::bench
