// The console on pipes and files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <thread>

#include "core/output/output.h"
#include "core/output/testing.h"

namespace dtrun::output {
namespace {

using ::testing::MatchesRegex;

class ConsoleTest : public ::testing::Test {
 protected:
  std::unique_ptr<Console> Open(int out_fd, int err_fd) {
    return Console::Open(out_fd, err_fd, folder_.path());
  }

  TempFolder folder_;
  Pipe out_;
  Pipe err_;
};

std::string Rest(Pipe& pipe) {
  pipe.writer.Reset();
  return ReadUntil(pipe.reader.get(), [](auto&) { return false; });
}

TEST_F(ConsoleTest, WritesLinesToTheirStreams) {
  const auto console = Open(out_.writer.get(), err_.writer.get());
  EXPECT_FALSE(console->terminal(Stream::kOut));
  console->Line(Stream::kOut, "one");
  console->Line(Stream::kErr, "two");
  console->Line(Stream::kOut, "three\nfour");
  console->Line(Stream::kOut, std::string_view("\0", 1));
  EXPECT_TRUE(console->Drain(-1));
  EXPECT_EQ(ReadUntil(out_.reader.get(), [](auto& got) { return got.size() >= 17; }),
            std::string("one\nthree\nfour\n\0\n", 17));
  EXPECT_EQ(ReadUntil(err_.reader.get(), [](auto& got) { return got.size() >= 4; }), "two\n");
}

TEST_F(ConsoleTest, KeepsTheOrderOfStreamsThatShareADescriptor) {
  auto console = Open(out_.writer.get(), out_.writer.get());
  std::string expected;
  for (int i = 0; i < 2000; ++i) {
    console->Line(i % 3 == 0 ? Stream::kErr : Stream::kOut, std::to_string(i));
    expected += std::to_string(i) + "\n";
  }
  EXPECT_TRUE(console->Drain(-1));
  console.reset();
  EXPECT_EQ(Rest(out_), expected);
}

TEST_F(ConsoleTest, KeepsStatesOutOfWhatIsNotATerminal) {
  auto console = Open(out_.writer.get(), err_.writer.get());
  console->Transient(0, " 10%");
  console->Line(Stream::kOut, "line");
  console->Transient(0, " 20%");
  console.reset();
  EXPECT_EQ(Rest(out_), "line\n");
  EXPECT_EQ(Rest(err_), "");
}

TEST_F(ConsoleTest, LosesNothingWhileNobodyReads) {
  auto console = Open(out_.writer.get(), err_.writer.get());
  // 80 MB: the pipe and the memory hold a tenth of it.
  constexpr int kLines = 800'000;
  const std::string filling(91, '.');
  const auto line = [&](int i) {
    const std::string number = std::to_string(i);
    return std::string(8 - number.size(), '0') + number + filling;
  };
  for (int i = 0; i < kLines; ++i) console->Line(Stream::kOut, line(i));
  EXPECT_FALSE(console->Drain(0));
  std::thread draining([&] { EXPECT_TRUE(console->Drain(-1)); });
  int checked = 0;
  std::string rest;
  ReadUntil(out_.reader.get(), [&](const std::string& got) {
    rest.append(got, static_cast<std::size_t>(checked) * 100 + rest.size());
    std::size_t at = 0;
    for (; rest.size() - at >= 100; at += 100) {
      if (rest.compare(at, 100, line(checked) + "\n") != 0) return true;
      ++checked;
    }
    rest.erase(0, at);
    return checked == kLines;
  });
  EXPECT_EQ(checked, kLines);
  EXPECT_EQ(rest, "");
  out_.reader.Reset();  // releases the thread if a check failed
  draining.join();
}

TEST_F(ConsoleTest, GivesUpOnAReaderThatTakesNothing) {
  const auto console = Open(out_.writer.get(), err_.writer.get());
  console->Line(Stream::kOut, std::string(1'000'000, 'x'));
  EXPECT_FALSE(console->Drain(50));
  out_.reader.Reset();  // otherwise the destructor would wait too
}

TEST_F(ConsoleTest, GivesUpOnAReaderThatTakesLittleForTooLong) {
  auto console = Open(out_.writer.get(), err_.writer.get());
  console->Line(Stream::kOut, std::string(10'000'000, 'x'));
  std::thread reading([&] {
    char bytes[4096];
    while (read(out_.reader.get(), bytes, sizeof bytes) > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  EXPECT_FALSE(console->Drain(10'000, 200));
  EXPECT_EQ(console->GiveUp(), 1u);
  console.reset();
  out_.writer.Reset();
  reading.join();
}

TEST_F(ConsoleTest, CountsWhatAStuckReaderMissesAndTellsTheOther) {
  auto console = Open(out_.writer.get(), err_.writer.get());
  constexpr int kLines = 300'000;  // 100 bytes each: more than memory holds, so the file is used
  for (int i = 0; i < kLines; ++i) console->Line(Stream::kOut, std::string(99, '.'));
  console->Line(Stream::kErr, "the verdict");
  EXPECT_FALSE(console->Drain(0));
  const std::uint64_t missing = console->GiveUp();
  console->Line(Stream::kOut, "too late");
  console.reset();
  const std::string read = Rest(out_);
  EXPECT_EQ(static_cast<std::uint64_t>(std::count(read.begin(), read.end(), '\n')) + missing, kLines);
  EXPECT_EQ(Rest(err_), "the verdict\ndtrun: " + std::to_string(missing) +
                            " lines not shown here; they are in the log files\n");
}

TEST_F(ConsoleTest, EndsThoughBothReadersAreStuck) {
  auto console = Open(out_.writer.get(), out_.writer.get());
  constexpr int kLines = 100'000;
  for (int i = 0; i < kLines; ++i)
    console->Line(i % 2 == 0 ? Stream::kOut : Stream::kErr, std::string(99, '.'));
  EXPECT_FALSE(console->Drain(0));
  const std::uint64_t missing = console->GiveUp();
  console.reset();
  const std::string read = Rest(out_);
  EXPECT_EQ(static_cast<std::uint64_t>(std::count(read.begin(), read.end(), '\n')) + missing, kLines);
}

TEST_F(ConsoleTest, HasNothingToGiveUpOnceAllIsWritten) {
  auto console = Open(out_.writer.get(), err_.writer.get());
  console->Line(Stream::kOut, "one");
  EXPECT_TRUE(console->Drain(-1));
  EXPECT_EQ(console->GiveUp(), 0u);
  console.reset();
  EXPECT_EQ(Rest(out_), "one\n");
  EXPECT_EQ(Rest(err_), "");
}

TEST_F(ConsoleTest, GoesOnWithOneStreamWhenTheReaderOfTheOtherIsGone) {
  auto console = Open(out_.writer.get(), err_.writer.get());
  out_.reader.Reset();
  for (int i = 0; i < 1000; ++i) console->Line(Stream::kOut, "not read");
  console->Line(Stream::kErr, "read");
  EXPECT_FALSE(console->Drain(-1));
  console.reset();
  const std::string err = Rest(err_);
  EXPECT_THAT(err, ::testing::HasSubstr("read\n"));
  EXPECT_THAT(err, ::testing::HasSubstr("dtrun: the reader of standard output has gone; the job continues"));
}

TEST_F(ConsoleTest, IsQuietWhereNobodyReadsErrors) {
  auto console = Open(out_.writer.get(), err_.writer.get());
  err_.reader.Reset();
  console->Line(Stream::kErr, "not read");
  EXPECT_FALSE(console->Drain(-1));
  console->Line(Stream::kOut, "read");
  console.reset();
  EXPECT_EQ(Rest(out_), "read\n");
}

TEST_F(ConsoleTest, SaysOnTheOtherStreamThatTheDiskIsFull) {
  const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  auto console = Open(full.get(), err_.writer.get());
  console->Line(Stream::kOut, "one");
  EXPECT_FALSE(console->Drain(-1));
  console->Line(Stream::kOut, "two");
  console.reset();
  EXPECT_EQ(Rest(err_),
            "dtrun: cannot write to standard output: no space left on device; "
            "the job continues, see the log files\n");
}

TEST_F(ConsoleTest, SaysHowManyLinesAreMissingWhenTheOverflowHasNoRoom) {
  auto console = Console::Open(out_.writer.get(), err_.writer.get(), folder_.path() / "missing");
  for (int i = 0; i < 200'000; ++i) console->Line(Stream::kOut, std::string(99, '.'));
  std::thread reading([&] { ReadUntil(out_.reader.get(), [](auto&) { return false; }); });
  EXPECT_TRUE(console->Drain(-1));
  console.reset();
  out_.writer.Reset();
  reading.join();
  EXPECT_THAT(
      Rest(err_),
      MatchesRegex("dtrun: [0-9]+ lines of [0-9]+ bytes not shown here, as they cannot wait in a file "
                   "in '.*/missing': no such file or directory; see the log files there\n"));
}

}  // namespace
}  // namespace dtrun::output
