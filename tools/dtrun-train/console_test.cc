#include "tools/dtrun-train/console.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

namespace dtrun::train {
namespace {

using std::chrono::milliseconds;

class ConsoleTest : public ::testing::Test {
 protected:
  ~ConsoleTest() override {
    std::fclose(out_);
    std::free(text_);
  }
  std::string Text() {
    std::fflush(out_);
    return {text_, size_};
  }
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* out_ = ::open_memstream(&text_, &size_);
};

TEST_F(ConsoleTest, RedrawsAtMostTenTimesASecond) {
  Console console(out_, true);
  const Console::Clock::time_point start = Console::Clock::now();
  EXPECT_TRUE(console.Due(start));
  EXPECT_FALSE(console.Due(start + milliseconds(99)));
  EXPECT_TRUE(console.Due(start + milliseconds(100)));
  EXPECT_FALSE(console.Due(start + milliseconds(199)));
}

TEST_F(ConsoleTest, ALineReplacesTheProgressBeforeIt) {
  Console console(out_, true);
  console.Progress("half");
  console.Line("whole");
  console.Line("next");
  EXPECT_EQ(Text(), "\rhalf\x1b[K\r\x1b[Kwhole\nnext\n");
}

TEST_F(ConsoleTest, IsPlainWithoutRedraw) {
  Console console(out_, false);
  EXPECT_FALSE(console.Due(Console::Clock::now()));
  console.Line("whole");
  EXPECT_EQ(Text(), "whole\n");
}

TEST(WantsRedrawTest, FollowsWhatDtrunSays) {
  ::setenv("DTRUN_CONSOLE", "terminal", 1);
  EXPECT_TRUE(WantsRedraw());
  ::setenv("DTRUN_CONSOLE", "plain", 1);
  EXPECT_FALSE(WantsRedraw());
  ::unsetenv("DTRUN_CONSOLE");
}

TEST(EpochLineTest, HasLossAccuracyAndSpeed) {
  EXPECT_EQ(EpochLine(3, 5, 0.34123, 0.87019, 51234.4),
            "epoch 3/5  loss 0.3412  test accuracy 0.8702  51234 samples/s");
}

TEST(ProgressLineTest, HasThePartDone) {
  EXPECT_EQ(ProgressLine(3, 5, 25200, 60000, 0.34123, 51234.4),
            "epoch 3/5   42%  loss 0.3412  51234 samples/s");
}

}  // namespace
}  // namespace dtrun::train
