#include "tools/dtrun/trace/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "dtrun/abi/types.h"

namespace dtrun::trace {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::int64_t kBegan = std::int64_t{1'800'000'000} * 1'000'000'000;

class TraceRun : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/dtrun-trace-XXXXXX";
    run_ = ::mkdtemp(name.data());
    Write("plan.json", R"({"hosts": [{"name": "a", "first_rank": 0, "local_size": 1},
                                     {"name": "b", "first_rank": 1, "local_size": 1}]})");
    Write("events.log", Events());
  }
  void TearDown() override { std::filesystem::remove_all(run_); }

  static std::string Events() {
    return R"({"at":100,"from":"root","kind":"opened","version":1,"job":"j","folder":"/r","began":"","began_ns":1800000000000000000}
{"at":5000,"from":"root","kind":"began","generation":0,"logs":"/r","processes":[{"rank":0,"count":1,"host":"a","program":"p"},{"rank":1,"count":1,"host":"b","program":"p"}],"regroups":0,"names_class":true}
{"at":5100,"from":"a","kind":"started","rank":0,"pid":11}
{"at":5200,"from":"b","kind":"started","rank":1,"pid":12}
{"at":5300,"from":"root","kind":"host-clock","host":"b","ahead_ns":1000000000,"uncertainty_ns":500}
{"at":6000,"from":"rank 0","kind":"joined","rank":0}
{"at":90000,"from":"a","kind":"ended","rank":0,"code":0}
{"at":95000,"from":"root","kind":"over"}
)";
  }
  void Write(const std::string& name, const std::string& text) { std::ofstream(run_ / name) << text; }

  // A trace with one allreduce of 1,000 bytes that begins and ends so long after the job's start, on a clock
  // that is `ahead` of the root's.
  static std::string ATrace(std::int64_t start, std::int64_t end, std::int64_t ahead) {
    contract::TraceRecord begin, name, call, last;
    begin.type = contract::TraceType::kBegin;
    begin.thread = contract::kTraceMagic;
    begin.bytes = contract::kTraceVersion;
    begin.start = 7000;
    begin.given = kBegan + ahead;
    name.type = contract::TraceType::kCommunicator;
    name.communicator = 1;
    name.thread = 2;
    name.SetText("world\ngloo");
    call.type = contract::TraceType::kCall;
    call.operation = DTRUN_ALLREDUCE;
    call.communicator = 1;
    call.thread = 77;
    call.bytes = 1000;
    call.number = 1;
    call.start = call.given = 7000 + start;
    call.end = 7000 + end;
    last.type = contract::TraceType::kEnd;
    std::string bytes;
    for (const auto& record : {begin, name, call, last})
      bytes.append(reinterpret_cast<const char*>(&record), sizeof record);
    return bytes;
  }
  // The events of that name.
  static std::vector<Json> Named(Timeline& timeline, const std::string& name) {
    std::vector<Json> found;
    const Json json = ParseJson(timeline.document.Text(timeline.began));
    for (const Json& event : json["traceEvents"])
      if (event["name"] == name) found.push_back(event);
    return found;
  }

  std::filesystem::path run_;
};

TEST_F(TraceRun, TheLauncherIsThereWithoutTraces) {
  auto timeline = ReadRunFolder(run_);
  ASSERT_TRUE(timeline) << timeline.error().text;
  EXPECT_EQ(timeline->began, kBegan);
  EXPECT_EQ(timeline->ranks_traced, 0u);
  const auto process = Named(*timeline, "process 11");
  ASSERT_EQ(process.size(), 1u);
  EXPECT_EQ(process[0]["ts"], 5.1);
  EXPECT_EQ(process[0]["dur"], 84.9);
  EXPECT_EQ(Named(*timeline, "generation 0").size(), 1u);
  EXPECT_EQ(Named(*timeline, "process 12")[0]["dur"], 89.8);  // until the generation was over
}

TEST_F(TraceRun, CallsOfHostsAreOnOneClockAndKnowTheLastRank) {
  Write("rank-0.trace", ATrace(10'000, 60'000, 0));
  Write("rank-1.trace", ATrace(40'000, 60'000, 1'000'000'000));
  auto timeline = ReadRunFolder(run_);
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->ranks_traced, 2u);
  const auto calls = Named(*timeline, "allreduce");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0]["ts"], 10.0);
  EXPECT_EQ(calls[1]["ts"], 40.0);
  EXPECT_EQ(calls[0]["args"]["last_rank"], 1);
  EXPECT_EQ(calls[0]["args"]["until_last_rank_us"], 30.0);
  EXPECT_EQ(calls[0]["args"]["bytes"], 1000);
  EXPECT_DOUBLE_EQ(calls[0]["args"]["busbw_GB_s"].get<double>(), 0.02);  // 1,000 bytes in 50 us
  EXPECT_DOUBLE_EQ(calls[0]["args"]["busbw_after_last_rank_GB_s"].get<double>(), 0.05);  // in 20 us
}

TEST_F(TraceRun, ATraceThatIsCutSaysSoAndKeepsTheRest) {
  const std::string whole = ATrace(10'000, 60'000, 0);
  Write("rank-0.trace", whole.substr(0, whole.size() - 70));
  Write("rank-1.trace", "this is no trace, and not even long");
  auto timeline = ReadRunFolder(run_);
  ASSERT_TRUE(timeline);
  EXPECT_THAT(timeline->missing, Contains(HasSubstr("stops without its end")));
  EXPECT_THAT(timeline->missing, Contains(HasSubstr("cut off")));
  EXPECT_THAT(timeline->missing, Contains(HasSubstr("rank-1.trace: it holds no calls")));
  EXPECT_EQ(Named(*timeline, "trace is incomplete").size(),
            0u);  // its only call is lost, and with it the row
}

TEST_F(TraceRun, WithoutEventsItIsNoRun) {
  std::filesystem::remove(run_ / "events.log");
  EXPECT_FALSE(ReadRunFolder(run_));
  Write("events.log", "{}\nnot json\n");
  EXPECT_FALSE(ReadRunFolder(run_));
}

TEST_F(TraceRun, SurvivesDamagedFiles) {
  std::mt19937 random(11);
  const std::string trace = ATrace(10'000, 60'000, 0), events = Events();
  const auto damaged = [&](std::string text) {
    for (int i = 0; i < 5; ++i) text[random() % text.size()] = static_cast<char>(random());
    text.resize(random() % (text.size() + 1));
    return text;
  };
  for (int round = 0; round < 200; ++round) {
    Write("events.log", round % 2 == 0 ? damaged(events) : events);
    Write("rank-0.trace", damaged(trace));
    auto timeline = ReadRunFolder(run_);
    if (timeline) {
      EXPECT_TRUE(ParseJson(timeline->document.Text(timeline->began)).is_object());
    }
  }
}

TEST(BusBandwidth, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(BusFactorOf(DTRUN_ALLREDUCE, 4), 1.5);
  EXPECT_DOUBLE_EQ(BusFactorOf(DTRUN_ALLGATHER, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactorOf(DTRUN_REDUCE_SCATTER, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactorOf(DTRUN_BROADCAST, 4), 1);
  EXPECT_DOUBLE_EQ(MessageBytes(DTRUN_ALLGATHER, 100, 4), 400);  // each rank gives 100
  EXPECT_DOUBLE_EQ(MessageBytes(DTRUN_ALLREDUCE, 100, 4), 100);
}

}  // namespace
}  // namespace dtrun::trace
