// The console on a terminal: checks every byte that it draws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <string>

#include "core/output/output.h"
#include "core/output/testing.h"

namespace dtrun::output {
namespace {

using ::testing::EndsWith;

class ConsoleTerminal : public ::testing::Test {
 protected:
  ConsoleTerminal() {
    int user = -1;
    int program = -1;
    if (openpty(&user, &program, nullptr, nullptr, nullptr) != 0) std::abort();
    user_ = UniqueFd(user);
    program_ = UniqueFd(program);
    termios mode{};
    tcgetattr(program, &mode);
    cfmakeraw(&mode);
    tcsetattr(program, TCSANOW, &mode);
    Resize(21);
    console_ = Console::Open(program, program, folder_.path());
  }

  void Resize(unsigned short columns) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = columns;
    ioctl(program_.get(), TIOCSWINSZ, &size);
  }

  // Everything written since the last call, once the console has settled.
  std::string Drained() {
    EXPECT_TRUE(console_->Drain(-1));
    return Written();
  }
  // A terminal delivers late but in order: read up to a marker of our own.
  std::string Written() {
    EXPECT_EQ(write(program_.get(), "\1", 1), 1);
    std::string got = Until("\1");
    got.resize(got.find('\1'));
    return got;
  }
  // Reads up to `end`.
  std::string Until(const std::string& end) {
    return ReadUntil(user_.get(), [&](auto& got) { return got.find(end) != got.npos; });
  }

  TempFolder folder_;
  UniqueFd user_;
  UniqueFd program_;
  std::unique_ptr<Console> console_;
};

TEST_F(ConsoleTerminal, WritesPlainLinesWhileThereIsNoState) {
  EXPECT_TRUE(console_->terminal(Stream::kOut));
  console_->Line(Stream::kOut, "one");
  console_->Line(Stream::kErr, "two");
  console_->Line(Stream::kOut, "three");
  EXPECT_EQ(Drained(), "one\ntwo\nthree\n");
}

TEST_F(ConsoleTerminal, GetsNoControlsButColours) {
  console_->Line(Stream::kOut, "\033[2K\033[31mred\033[0m\033[A\033]0;title\a\none\033]52;c;\ntwo");
  EXPECT_EQ(Drained(), "\033[31mred\033[0m\none\ntwo\n");
  console_->Transient(0, "10%\033]0;title\a\033[>4;1m\u202e\033]5");
  EXPECT_EQ(Drained(), "\r\033[K10%");
}

TEST_F(ConsoleTerminal, GetsTheColoursOfARankInItsLinesOnly) {
  const auto open = [&](int rank) {
    auto output = RankOutput::Open({folder_.path()}, {rank, 2}, {.colour = ColourWhen::kNever}, *console_);
    EXPECT_TRUE(output.ok());
    return *std::move(output);
  };
  const auto first = open(0), second = open(1);
  first->Feed(Stream::kOut, "\033[31mred\n");
  second->Feed(Stream::kErr, "plain\n");
  first->Feed(Stream::kOut, "still\033[0m\n");
  EXPECT_EQ(Drained(), "[0] \033[31mred\033[0m\n[1] plain\n[0] \033[31mstill\033[0m\n");
}

TEST_F(ConsoleTerminal, GetsNoControlsWhileStdoutIsRedirected) {
  Pipe out;
  console_ = Console::Open(out.writer.get(), program_.get(), folder_.path());
  console_->Line(Stream::kErr, "a\033]0;title\ab");
  console_->Line(Stream::kOut, "a\033c");
  EXPECT_EQ(Drained(), "ab\n");
  EXPECT_EQ(ReadUntil(out.reader.get(), [](auto& got) { return got.size() >= 4; }), "a\033c\n");
}

TEST_F(ConsoleTerminal, RedrawsTheStateBelowTheLines) {
  console_->Transient(0, "[0] 10%");
  EXPECT_EQ(Drained(), "\r\033[K[0] 10%");
  console_->Line(Stream::kErr, "line\nanother");
  EXPECT_EQ(Drained(), "\r\033[Kline\nanother\n\r\033[K[0] 10%");
  console_->Transient(0, "[0] 20%");
  EXPECT_EQ(Drained(), "\r\033[K[0] 20%");
  console_->Transient(0, "");
  EXPECT_EQ(Drained(), "\r\033[K");
  console_->Line(Stream::kOut, "end");
  EXPECT_EQ(Drained(), "end\n");
}

TEST_F(ConsoleTerminal, ShowsTheSourceThatChangedLast) {
  console_->Transient(0, "a");
  console_->Transient(1, "b");
  EXPECT_THAT(Drained(), EndsWith("\r\033[Kb"));
  console_->Transient(0, "a2");
  EXPECT_EQ(Drained(), "\r\033[Ka2");
  console_->Transient(0, "");
  EXPECT_EQ(Drained(), "\r\033[Kb");
  console_->Transient(2, "");
  EXPECT_EQ(Drained(), "");
}

TEST_F(ConsoleTerminal, CutsTheStateToItsWidth) {
  console_->Transient(0, "\033[32m██████████\033[0m 日本語日本語");
  EXPECT_EQ(Drained(), "\r\033[K\033[32m██████████\033[0m 日本語日\033[0m");
  Resize(6);
  console_->Transient(0, "0123456789");
  EXPECT_EQ(Drained(), "\r\033[K01234");
}

TEST_F(ConsoleTerminal, DrawsTheNewestStateOfMany) {
  for (int i = 0; i <= 100'000; ++i) console_->Transient(0, std::to_string(i));
  const std::string drawn = Until("\r\033[K100000");
  EXPECT_THAT(drawn, EndsWith("\r\033[K100000"));
  EXPECT_LT(drawn.size(), 20'000u) << "states were not drawn together";
}

TEST_F(ConsoleTerminal, WritesALineThatMeetsAStateWithoutFurtherInput) {
  console_->Transient(0, "busy");
  Until("busy");
  console_->Line(Stream::kOut, "line");
  EXPECT_EQ(Until("busy"), "\r\033[Kline\n\r\033[Kbusy");
}

TEST_F(ConsoleTerminal, IsLeftCleanAtTheEnd) {
  console_->Transient(0, "busy");
  Drained();
  console_->Transient(1, "busy too");
  console_.reset();
  EXPECT_THAT(Written(), EndsWith("\r\033[K"));
}

TEST_F(ConsoleTerminal, ThatHangsUpIsLeftAlone) {
  console_->Transient(0, "busy");
  Drained();
  user_.Reset();
  console_->Line(Stream::kOut, "line");
  EXPECT_FALSE(console_->Drain(-1));
  console_->Transient(0, "busy");
  EXPECT_FALSE(console_->Drain(-1));
}

TEST_F(ConsoleTerminal, DoesNotSeeLinesForAStreamThatIsRedirected) {
  Pipe err;
  console_ = Console::Open(program_.get(), err.writer.get(), folder_.path());
  console_->Transient(0, "busy");
  Drained();
  console_->Line(Stream::kErr, "to a file");
  EXPECT_EQ(Drained(), "");
  EXPECT_EQ(ReadUntil(err.reader.get(), [](auto& got) { return got.size() >= 10; }), "to a file\n");
}

}  // namespace
}  // namespace dtrun::output
