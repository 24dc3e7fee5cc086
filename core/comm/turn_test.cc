#include "core/comm/turn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/comm/testing/local_spaces.h"

namespace dtrun::comm {
namespace {

using ::testing::HasSubstr;

TEST(Turn, IsCounted) {
  testing::LocalSpaces spaces;
  for (int number = 0; number < 3; ++number) {
    Result<Turn> turn = Turn::Take(spaces.Space(""), 1);
    ASSERT_TRUE(turn);
    EXPECT_EQ(turn->number(), number);
    turn->End();
  }
  EXPECT_EQ(Turn::Take(spaces.Space(""), 0)->number(), 0) << "of another rank";
}

TEST(Turn, IsNotTakenTwiceByOneProcess) {  // which is what another program sees that it executed
  testing::LocalSpaces spaces;
  ASSERT_TRUE(Turn::Take(spaces.Space(""), 1));
  const Result<Turn> second = Turn::Take(spaces.Space(""), 1);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, DTRUN_FAILED_PRECONDITION);
  EXPECT_THAT(second.error().text, HasSubstr("(exec)"));
}

TEST(Turn, IsNotTakenFromALivingProcess) {
  testing::LocalSpaces spaces;
  ASSERT_TRUE(Turn::Take(spaces.Space(""), 1));
  const pid_t child = ::fork();
  if (child == 0) {
    const Result<Turn> own = Turn::Take(spaces.Space(""), 1);
    const std::string holder = "process " + std::to_string(::getppid());
    ::_exit(!own && own.error().text.find(holder) != std::string::npos ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Turn, OfAProcessThatIsGoneIsOver) {
  testing::LocalSpaces spaces;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_TRUE(spaces.Space("")->Set("1", "4 joined " + std::to_string(child) + " 12345"));
  const Result<Turn> next = Turn::Take(spaces.Space(""), 1);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->number(), 5);
}

}  // namespace
}  // namespace dtrun::comm
