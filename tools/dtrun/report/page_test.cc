#include "tools/dtrun/report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/verdict/event_log.h"
#include "tools/dtrun/report/events.h"

namespace dtrun::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kEvil[] = "<script>alert(1)</script>";

std::vector<verdict::Entry> Entries(const std::vector<std::string>& lines) {
  std::vector<verdict::Entry> entries;
  for (const std::string& line : lines) {
    auto entry = verdict::FromLine(line);
    EXPECT_TRUE(entry) << (entry ? "" : entry.error().text);
    if (entry) entries.push_back(*std::move(entry));
  }
  return entries;
}

std::vector<verdict::Entry> TwoGenerations() {
  const auto began = [](int generation, double at) {
    return "{\"at\":" + std::to_string(static_cast<long long>(at * 1e9)) +
           ",\"from\":\"root\",\"kind\":\"began\",\"generation\":" + std::to_string(generation) +
           ",\"logs\":\"/x\",\"processes\":[{\"rank\":0,\"count\":1,\"host\":\"" + kEvil +
           "\",\"program\":\"p\"},{\"rank\":1,\"count\":1,\"host\":\"b\",\"program\":\"p\"}],\"regroups\":0,"
           "\"names_class\":true}";
  };
  return Entries(
      {began(0, 0), R"({"at":100000000,"from":"a","kind":"started","rank":0,"pid":7})",
       R"({"at":100000000,"from":"a","kind":"started","rank":1,"pid":8})",
       R"({"at":2000000000,"from":"a","kind":"ended","rank":1,"code":3})",
       R"({"at":2100000000,"from":"a","kind":"ended","rank":0,"code":0,"signal":15,"signal_sent":15})",
       began(1, 3), R"({"at":3100000000,"from":"a","kind":"started","rank":0,"pid":9})",
       R"({"at":3100000000,"from":"a","kind":"started","rank":1,"pid":10})",
       R"({"at":5000000000,"from":"a","kind":"ended","rank":1,"code":0})"});
}

TEST(LivesOfRanks, AreFoldedByGeneration) {
  const Lives lives = LivesOf(TwoGenerations(), 9);
  ASSERT_EQ(lives.lives.size(), 4u);
  EXPECT_EQ(lives.lives[1].kind, Bar::Kind::kBad);
  EXPECT_EQ(lives.lives[0].kind, Bar::Kind::kStopped);
  EXPECT_EQ(lives.lives[2].kind, Bar::Kind::kRuns);
  EXPECT_EQ(lives.lives[2].to, 9);
  EXPECT_EQ(lives.lives[3].kind, Bar::Kind::kGood);
  EXPECT_THAT(lives.restarts, ::testing::ElementsAre(3));
  EXPECT_EQ(lives.generation, 1u);
}

TEST(EventsOfAReport, AreBounded) {
  std::vector<std::string> lines;
  for (int i = 0; i < 2000; ++i)
    lines.push_back(R"({"at":1,"from":"a","kind":"ended","rank":)" + std::to_string(i) + R"(,"code":0})");
  const auto events = EventLines(Entries(lines));
  EXPECT_EQ(events.size(), 501u);
  EXPECT_EQ(events[250].what, "1500 events are left out here");
}

TEST(SeriesOfAReport, SkipDamagedLines) {
  const Series series = ReadSeries(
      "{\"time\":101.5,\"rank\":1,\"name\":\"loss\",\"value\":0.5,\"step\":3}\n"
      "{\"time\":\"x\",\"name\":\"loss\",\"value\":1}\nnothing\n[]\n"
      "{\"time\":101,\"rank\":1,\"name\":\"loss\",\"value\":\"NaN\"}\n{\"time\":10",
      100);
  ASSERT_EQ(series.at("loss").at(1).size(), 2u);
  EXPECT_TRUE(std::isnan(series.at("loss").at(1)[0].value));
  EXPECT_EQ(series.at("loss").at(1)[1].time, 1.5);
  EXPECT_EQ(series.at("loss").at(1)[1].step, 3);
}

TEST(ReportPage, EscapesWhatProgramsAndHostsTell) {
  RunRecords records;
  records.folder = kEvil;
  records.story.job = kEvil;
  records.story.state = kEvil;
  records.story.verdict = std::string("job failed\n  ") + kEvil;
  records.story.unread = {kEvil};
  records.story.choices = {{kEvil, kEvil, kEvil}};
  records.plan = {{"job", kEvil},
                  {"launcher", kEvil},
                  {"hosts", {{{"name", kEvil}}}},
                  {"processes", {{{"argv", {"python3", kEvil}}}}}};
  records.config = {{kEvil, {{"value", kEvil}, {"origin", kEvil}}}};
  records.entries = TwoGenerations();
  records.metrics = ReadSeries(std::string("{\"time\":1,\"rank\":0,\"name\":\"") + kEvil +
                                   "\",\"value\":1,\"step\":1}\n{\"time\":2,\"rank\":0,\"name\":\"" + kEvil +
                                   "\",\"value\":2,\"step\":2}\n",
                               0);
  records.seconds = 9;
  const std::string page = Page(records);
  EXPECT_THAT(page,
              AllOf(Not(HasSubstr("<script")), HasSubstr("&lt;script&gt;"), HasSubstr("default-src 'none'"),
                    Not(HasSubstr("http://")), Not(HasSubstr("https://")), Not(HasSubstr("url("))));
}

TEST(ReportPage, WorksWithoutAnyRecord) {
  const std::string page = Page({});
  EXPECT_THAT(page, AllOf(HasSubstr("<!doctype html>"), HasSubstr("</html>"), Not(HasSubstr("Metrics"))));
}

}  // namespace
}  // namespace dtrun::report
