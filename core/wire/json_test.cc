#include "core/wire/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::wire {
namespace {

using ::testing::HasSubstr;

enum class Level : std::uint8_t { kOk, kWarning };
constexpr std::array<const char*, 2> EnumNames(Level) { return {"ok", "warning"}; }

struct Check {
  static constexpr char kName[] = "check";
  Level level = Level::kOk;
  std::string fix;
  int count = 0;
  void Fields(auto& io) {
    io("level", level);
    io("fix", fix, Most{8}, kPrintable, kMayMiss);
    io("count", count, Between{0, 9});
  }
};

struct Report {
  static constexpr char kName[] = "report";
  std::vector<Check> checks;
  std::map<std::string, std::string> names;
  std::optional<double> seconds;
  std::vector<std::pair<std::string, int>> pairs;
  void Fields(auto& io) {
    io("checks", checks, kMostEntries);
    io("names", names, kMostEntries, Most{2});
    io("seconds", seconds);
    io("pairs", pairs, kMostEntries);
  }
};

std::string ErrorOf(std::string_view text) {
  const auto read = FromJson<Check>(ParseJson(text), "check");
  return read ? "" : read.error().text;
}

TEST(WireJson, NamesTheFieldsOfATypeAndReadsThemBack) {
  const Report report{{{Level::kWarning, "x", 3}, {}}, {{"a", "b"}}, 0.5, {{"p", 1}}};
  const Json json = ToJson(report);
  EXPECT_EQ(JsonLine(json), R"({"checks":[{"level":"warning","fix":"x","count":3},{"level":"ok","count":0}],)"
                            R"("names":{"a":"b"},"seconds":0.5,"pairs":[["p",1]]})");
  const auto read = FromJson<Report>(json, "report");
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(ToJson(*read), json);
}

TEST(WireJson, TellsAlternativesByTheirKind) {
  using Record = std::variant<Report, Check>;
  const Json json = ToJson(Record(Check{Level::kOk, "", 1}));
  EXPECT_EQ(JsonLine(json), R"({"kind":"check","level":"ok","count":1})");
  EXPECT_EQ(std::get<Check>(FromJson<Record>(json, "record").value()).count, 1);
  EXPECT_THAT(FromJson<Record>(ParseJson(R"({"kind":"x"})"), "record").error().text,
              HasSubstr("is of unknown kind 'x'"));
}

TEST(WireJson, RefusesWhatIsMissingOfAnotherTypeOrBeyondItsLimits) {
  EXPECT_EQ(ErrorOf(R"({"level":"ok","count":9,"new":1})"), "");
  EXPECT_EQ(ErrorOf(R"({"level":"ok"})"), "malformed check: count is missing");
  EXPECT_EQ(ErrorOf(R"({"level":"bad","count":1})"), "malformed check: level is none of its choices");
  EXPECT_EQ(ErrorOf(R"({"level":"ok","count":"1"})"), "malformed check: count is of another type");
  EXPECT_EQ(ErrorOf(R"({"level":"ok","count":10})"), "malformed check: count 10 is not from 0 to 9");
  EXPECT_EQ(ErrorOf(R"({"level":"ok","count":4294967296})"), "malformed check: count does not fit its type");
  EXPECT_THAT(ErrorOf(R"({"level":"ok","fix":"123456789","count":1})"), HasSubstr("fix has 9"));
  EXPECT_THAT(ErrorOf(R"({"level":"ok","fix":"\u001b","count":1})"), HasSubstr("fix has control"));
  EXPECT_NE(ErrorOf("[]"), "");
  EXPECT_NE(ErrorOf("{"), "");
}

}  // namespace
}  // namespace dtrun::wire
