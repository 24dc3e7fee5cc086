#include "core/log/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/base/fd.h"
#include "core/base/json.h"

namespace dtrun::log {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

constexpr Room kNetwork("network");

class LogTest : public ::testing::Test {
 protected:
  LogTest() {
    std::string pattern = ::testing::TempDir() + "dtrun-log-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    Start(*ParseOptions("info,job=debug", nullptr), "node1", std::nullopt);
    WriteTo([this](std::string_view line) { lines_ += line; });
  }
  ~LogTest() override {
    WriteTo(nullptr);
    KeepIn({}, {}, 0);
    Start({}, "", std::nullopt);
    std::filesystem::remove_all(folder_);
  }

  UniqueFd Folder() const { return UniqueFd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }

  static std::string Text(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

  std::string lines_;
  std::filesystem::path folder_;
};

TEST_F(LogTest, ALineHasTimeHostLevelAndRoom) {
  kNetwork.Info("{} is {}", "eth0", "up");
  EXPECT_THAT(lines_, MatchesRegex("20[0-9-]+ [0-9:]+[.][0-9]+ node1 info network: eth0 is up\n"));
}

TEST_F(LogTest, AndTheRankInARank) {
  Start(*ParseOptions("info", nullptr), "node1", 3);
  kNetwork.Write(Level::kWarn, "two\nlines");
  EXPECT_THAT(lines_, EndsWith(" node1 rank 3 warn network: two lines\n"));
}

TEST_F(LogTest, KeepsWhatWasAskedForAndFormatsNothingElse) {
  EXPECT_FALSE(kNetwork.Keeps(Level::kDebug));
  kNetwork.Debug("no");
  EXPECT_EQ(lines_, "");
  Room("job").Debug("yes");
  EXPECT_THAT(lines_, EndsWith("debug job: yes\n"));
  Start(*ParseOptions("off", nullptr), "", std::nullopt);
  kNetwork.Write(Level::kError, "no");
  EXPECT_THAT(lines_, EndsWith("debug job: yes\n"));
}

TEST_F(LogTest, JsonHasAnObjectForEachLine) {
  Start(*ParseOptions("info", "json"), "node1", 3);
  kNetwork.Info("a \"quoted\" \xff name");
  const Json json = ParseJson(lines_);
  EXPECT_EQ(json.at("host"), "node1");
  EXPECT_EQ(json.at("rank"), 3);
  EXPECT_EQ(json.at("level"), "info");
  EXPECT_EQ(json.at("part"), "network");
  EXPECT_EQ(json.at("text"), "a \"quoted\" \\xff name");
  EXPECT_THAT(json.at("time").get<std::string>(), MatchesRegex("20[0-9-]+T[0-9:.]+Z"));
}

TEST_F(LogTest, LongTextsAreCut) {
  kNetwork.Write(Level::kInfo, std::string(5000, 'x'));
  EXPECT_THAT(lines_, EndsWith("xxx... (1500 bytes more)\n"));
}

TEST_F(LogTest, AFileGetsWhatWasWrittenBeforeItToo) {
  kNetwork.Info("before");
  KeepIn(Folder(), folder_, 0640);
  kNetwork.Info("after");
  PassOn("of another host\n");
  EXPECT_THAT(Text(folder_ / "dtrun.log"),
              AllOf(HasSubstr("network: before\n"), HasSubstr("network: after\nof another host\n")));
}

TEST_F(LogTest, AFileOfTheNameIsReplacedAndNotFollowed) {
  for (const char* const kind : {"link", "pipe", "file"}) {
    const auto file = folder_ / "dtrun.log";
    std::filesystem::remove(file);
    std::ofstream(folder_ / "theirs") << "theirs";
    if (kind == std::string_view("link")) std::filesystem::create_symlink(folder_ / "theirs", file);
    if (kind == std::string_view("pipe")) {
      ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    }
    if (kind == std::string_view("file")) std::ofstream(file) << "of before\n";
    KeepIn(Folder(), folder_, 0640);
    kNetwork.Info("mine");
    EXPECT_EQ(Text(folder_ / "theirs"), "theirs") << kind;
    EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(file))) << kind;
    EXPECT_THAT(Text(file), AllOf(HasSubstr("mine\n"), Not(HasSubstr("of before")))) << kind;
    EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0640)) << kind;
  }
}

TEST_F(LogTest, TheFileRotates) {
  KeepIn(Folder(), folder_, 0640);
  const std::string text(3000, 'x');
  for (int i = 0; i < 15000; ++i) kNetwork.Write(Level::kInfo, text);
  EXPECT_LE(std::filesystem::file_size(folder_ / "dtrun.log"), 10u << 20);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "dtrun.2.log"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "dtrun.3.log"));
}

TEST_F(LogTest, ASinkGetsWhatWasWrittenBefore) {
  kNetwork.Info("before");
  std::string later;
  WriteTo([&](std::string_view line) { later += line; }, true);
  EXPECT_THAT(later, EndsWith("network: before\n"));
}

TEST_F(LogTest, LeavesErrnoAlone) {
  errno = ENOSPC;
  kNetwork.Info("x");
  EXPECT_EQ(errno, ENOSPC);
}

class StandardError : public LogTest {
 protected:
  StandardError() : saved_(::dup(STDERR_FILENO)) { WriteTo(nullptr); }
  ~StandardError() override { ::dup2(saved_.get(), STDERR_FILENO); }
  void Restore() { ::dup2(saved_.get(), STDERR_FILENO); }

  UniqueFd saved_;
};

TEST_F(StandardError, ThatIsFullCostsLinesAndNoTime) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  ::fcntl(writing.get(), F_SETPIPE_SZ, 4096);
  ::dup2(writing.get(), STDERR_FILENO);
  for (int i = 0; i < 100; ++i) kNetwork.Info("line {}", i);
  std::string read(8192, '\0');
  read.resize(static_cast<std::size_t>(::read(reading.get(), read.data(), read.size())));
  EXPECT_THAT(read, HasSubstr("line 0\n"));
  kNetwork.Info("last");
  std::string rest(8192, '\0');
  rest.resize(static_cast<std::size_t>(::read(reading.get(), rest.data(), rest.size())));
  Restore();
  EXPECT_THAT(rest, AllOf(StartsWith("dtrun: "), HasSubstr(" lines of the log were dropped"),
                          EndsWith("network: last\n")));
}

// JSON escapes make a line longer than a pipe has room for.
TEST_F(StandardError, ThatIsFullCutsALongLineAndTakesNoTime) {
  Start(*ParseOptions("info", "json"), "node1", 3);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  ::fcntl(writing.get(), F_SETPIPE_SZ, 4096);
  ::dup2(writing.get(), STDERR_FILENO);
  kNetwork.Write(Level::kInfo, std::string(3000, '\1'));
  Restore();
  std::string read(8192, '\0');
  EXPECT_EQ(::read(reading.get(), read.data(), read.size()), 4096);
}

TEST_F(StandardError, TellsThatAFileCannotBeWritten) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  ::dup2(writing.get(), STDERR_FILENO);
  std::filesystem::create_directory(folder_ / "dtrun.log");
  KeepIn(Folder(), folder_, 0640);
  kNetwork.Info("first");
  kNetwork.Info("second");
  std::string read(8192, '\0');
  read.resize(static_cast<std::size_t>(::read(reading.get(), read.data(), read.size())));
  Restore();
  EXPECT_THAT(read, AllOf(HasSubstr("first\n"), HasSubstr("error job: the log is no longer kept in a file: "),
                          EndsWith("second\n")));
}

TEST(LogOptions, AnUnknownFormatIsTold) {
  EXPECT_EQ(ParseOptions("", "xml").error().text, "DTRUN_LOG_FORMAT is 'xml'; expected text or json");
  EXPECT_THAT(ParseOptions("loud", nullptr).error().text,
              StartsWith("DTRUN_LOG: 'loud' in 'loud' is no level"));
}

}  // namespace
}  // namespace dtrun::log
