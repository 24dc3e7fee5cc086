#include "core/metrics/journal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <limits>

#include "core/base/json.h"
#include "core/base/read_file.h"
#include "core/base/text.h"

namespace dtrun::metrics {
namespace {

using ::testing::ElementsAre;

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    char name[] = "/tmp/dtrun-journal-XXXXXX";
    path_ = ::mkdtemp(name);
    folder_ = UniqueFd(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  ~JournalTest() override { std::filesystem::remove_all(path_); }

  Journal Make(std::size_t most) { return {folder_.get(), path_ / kFile, 0600, most}; }
  static Time At(double seconds) {
    return Time(std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(seconds)));
  }
  std::vector<Json> Lines() const {
    std::vector<Json> lines;
    const std::string text = ReadForeignFile(path_ / kFile, 1 << 26);
    for (const std::string_view line : LinesOf(text)) lines.push_back(ParseJson(std::string(line)));
    return lines;
  }

  std::filesystem::path path_;
  UniqueFd folder_;
};

TEST_F(JournalTest, WritesOneObjectALine) {
  Journal journal = Make(1 << 20);
  journal.Add("loss", 3, {0.5, 12, At(100.25)});
  journal.Add("dtrun_job_ranks", kOfTheJob, {4, {}, At(101)});
  EXPECT_TRUE(Lines().empty());
  ASSERT_TRUE(journal.Write());
  const std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], ParseJson(R"({"time":100.25,"rank":3,"name":"loss","value":0.5,"step":12})"));
  EXPECT_EQ(lines[1], ParseJson(R"({"time":101.0,"name":"dtrun_job_ranks","value":4})"));
  EXPECT_EQ(journal.newest().size(), 2u);
}

TEST_F(JournalTest, WritesNumbersThatJsonLacksAsTexts) {
  EXPECT_EQ(NumberJson(std::numeric_limits<double>::quiet_NaN()), "\"NaN\"");
  EXPECT_EQ(NumberJson(std::numeric_limits<double>::infinity()), "\"+Inf\"");
  EXPECT_EQ(NumberJson(-std::numeric_limits<double>::infinity()), "\"-Inf\"");
  EXPECT_EQ(NumberJson(1e300), "1e+300");
}

TEST_F(JournalTest, TheNewestValueIsWrittenAtTheEnd) {
  Journal journal = Make(1 << 20);
  journal.Add("loss", 0, {1, {}, At(1)});
  journal.Add("loss", 0, {2, {}, At(1.1)});
  journal.Add("loss", 0, {3, {}, At(1.2)});
  ASSERT_TRUE(journal.Write());
  EXPECT_EQ(Lines().size(), 1u);
  ASSERT_TRUE(journal.Finish());
  EXPECT_EQ(Lines().back()["value"], 3);
  ASSERT_TRUE(journal.Finish());
  EXPECT_EQ(Lines().size(), 2u);
}

TEST_F(JournalTest, CoversTheWholeRunInBoundedSize) {
  constexpr std::size_t kMost = 20000;
  Journal journal = Make(kMost);
  for (int second = 0; second < 3000; ++second) {
    for (int rank = 0; rank < 3; ++rank) journal.Add("loss", rank, {1.0 * second, second, At(second)});
    ASSERT_TRUE(journal.Write());
    ASSERT_LT(std::filesystem::file_size(path_ / kFile), kMost + 1000);
  }
  ASSERT_TRUE(journal.Finish());
  const std::vector<Json> lines = Lines();
  EXPECT_GT(lines.size(), 60u);
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<int> steps;
    for (const Json& line : lines) {
      if (line["rank"] == rank) steps.push_back(line["step"].get<int>());
    }
    EXPECT_EQ(steps.front(), 0);
    EXPECT_EQ(steps.back(), 2999);
    EXPECT_TRUE(std::ranges::is_sorted(steps));
    for (std::size_t i = 1; i < steps.size(); ++i) EXPECT_LT(steps[i] - steps[i - 1], 300);
  }
}

TEST_F(JournalTest, SeriesAreBounded) {
  Journal journal = Make(1 << 26);
  for (std::size_t i = 0; i < kMostSeries + 5; ++i) journal.Add("loss", static_cast<int>(i), {0, {}, At(1)});
  EXPECT_EQ(journal.newest().size(), kMostSeries);
  EXPECT_EQ(journal.dropped(), 5u);
}

TEST_F(JournalTest, AnErrorIsReportedOnceAndNamesTheFile) {
  std::filesystem::create_directory(path_ / kFile);
  Journal journal = Make(1 << 20);
  journal.Add("loss", 0, {1, {}, At(1)});
  const Status written = journal.Write();
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().text, ::testing::HasSubstr(kFile));
  journal.Add("loss", 0, {1, {}, At(2)});
  EXPECT_TRUE(journal.Write());
}

TEST(Thinning, KeepsEverySecondLineOfEachSeries) {
  EXPECT_EQ(Thinned("{\"time\":1,\"rank\":0,\"name\":\"a\",\"value\":1}\n{\"time\":1,\"rank\":1,\"name\":"
                    "\"a\",\"value\":2}\n"
                    "{\"time\":2,\"rank\":0,\"name\":\"a\",\"value\":3}\nhalf a li"),
            "{\"time\":1,\"rank\":0,\"name\":\"a\",\"value\":1}\n{\"time\":1,\"rank\":1,\"name\":\"a\","
            "\"value\":2}\n");
}

}  // namespace
}  // namespace dtrun::metrics
