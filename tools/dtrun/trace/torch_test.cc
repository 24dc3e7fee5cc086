#include "tools/dtrun/trace/torch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace dtrun::trace {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kTorchBegan = std::int64_t{1'800'000'000} * 1'000'000'000;

class TraceTorch : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/dtrun-trace-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    timeline_.began = kTorchBegan;
    timeline_.hosts = {{0, "a"}, {3, "b"}};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  std::string ErrorOf(const std::string& text) {
    const Status added = AddTorch(Write("t.json", text), &timeline_);
    return added ? "" : added.error().text;
  }

  std::filesystem::path folder_;
  Timeline timeline_;
};

// As torch 2 writes it.
constexpr char kTrace[] =
    R"json({"schemaVersion": 1, "distributedInfo": {"backend": "gloo", "rank": 3, "world_size": 4},
  "baseTimeNanoseconds": 1799999000000000000, "traceEvents": [
  {"ph": "M", "name": "process_name", "ts": 5.0, "pid": 18, "tid": 0, "args": {"name": "python"}},
  {"ph": "M", "name": "thread_name", "ts": 5.0, "pid": 18, "tid": 19, "args": {"name": "thread 19 (loop)"}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::ones", "pid": 18, "tid": 19, "ts": 1000000002.5, "dur": 2.25, "args": {"Ev Idx": 1}},
  {"ph": "s", "id": 7, "name": "ac2g", "pid": 18, "tid": 19, "ts": 1000000003.0},
  {"ph": "X", "name": "Profiler", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 1000000000, "dur": 9},
  {"ph": "X", "name": "no duration", "pid": 18, "tid": 19, "ts": 1000000002.5}]})json";

TEST_F(TraceTorch, EventsAreOnTheRowsOfTheirRankAndOnTheClockOfTheRoot) {
  timeline_.clocks.Add("b", kTorchBegan, 1'000'000, 10);
  const Status added = AddTorch(Write("t.json", kTrace), &timeline_);
  ASSERT_TRUE(added) << added.error().text;
  const Json json = ParseJson(timeline_.document.Text(kTorchBegan));
  std::size_t seen = 0;
  for (const Json& event : json["traceEvents"]) {
    EXPECT_GE(event["pid"].get<int>(), ProcessOf(3));
    EXPECT_LT(event["pid"].get<int>(), ProcessOf(4));
    if (event["name"] == "aten::ones") {
      EXPECT_EQ(event["ts"], -997.5);  // 2.5 us on a clock that is 1 ms ahead
      EXPECT_EQ(event["dur"], 2.25);
      EXPECT_EQ(event["args"]["Ev Idx"], 1);
      ++seen;
    }
    if (event["name"] == "ac2g") {
      EXPECT_EQ(event["id"], "3.7");
      ++seen;
    }
    if (event["name"] == "process_name" && event["args"]["name"] == "rank 3 on b, torch: python 18") ++seen;
  }
  EXPECT_EQ(seen, 3u);
  EXPECT_THAT(timeline_.missing, ::testing::ElementsAre(HasSubstr("1 events"), HasSubstr("another run")));
}

TEST_F(TraceTorch, TimesSince1970NeedNoBase) {
  std::string text = kTrace;
  text.replace(text.find("\"baseTimeNanoseconds\": 1799999000000000000,"), 43, "");
  for (std::size_t at = 0; (at = text.find("100000000", at)) != text.npos;)
    text.replace(at, 9, "180000000000000");
  ASSERT_TRUE(AddTorch(Write("t.json", text), &timeline_));
  const Json json = ParseJson(timeline_.document.Text(kTorchBegan));
  for (const Json& event : json["traceEvents"])
    if (event["name"] == "aten::ones") {
      EXPECT_NEAR(event["ts"].get<double>(), 2.5, 0.3);
    }
}

TEST_F(TraceTorch, FilesThatCannotBePlacedAreRefused) {
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("Kineto"));
  EXPECT_THAT(ErrorOf(std::string(kTrace).substr(0, 300)), HasSubstr("cut off"));
  EXPECT_THAT(ErrorOf(R"({"traceEvents": []})"), HasSubstr("distributedInfo"));
  EXPECT_FALSE(AddTorch(folder_ / "none.json", &timeline_));
}

TEST_F(TraceTorch, AFolderGivesItsJsonFiles) {
  Write("b.json", kTrace);
  Write("a.json", kTrace);
  Write("c.txt", "");
  const auto files = TorchFiles({folder_.string()});
  ASSERT_TRUE(files);
  EXPECT_EQ(*files, (std::vector<std::filesystem::path>{folder_ / "a.json", folder_ / "b.json"}));
  EXPECT_FALSE(TorchFiles({(folder_ / "x.json.gz").string()}));
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_FALSE(TorchFiles({(folder_ / "empty").string()}));
}

}  // namespace
}  // namespace dtrun::trace
