#include "core/base/program_output.h"

#include <gmock/gmock.h>

namespace dtrun {
namespace {

using ::testing::HasSubstr;

TEST(OutputOf, IsWhatItPrintsAndHowItEnds) {
  const auto shell = OutputOf({{"/bin/sh", "-c", "echo one; exit 3"}});
  ASSERT_TRUE(shell.ok());
  EXPECT_EQ(shell->text, "one\n");
  EXPECT_FALSE(shell->succeeded());
  EXPECT_TRUE(OutputOf({{"/bin/sh", "-c", "cat"}})->succeeded());  // its input is empty
}

TEST(OutputOf, RunsInTheFolderAndTheEnvironmentGiven) {
  const auto shell = OutputOf({{"/bin/sh", "-c", "pwd; echo $WORD"}, {"WORD=hello"}, "/usr"});
  ASSERT_TRUE(shell.ok());
  EXPECT_EQ(shell->text, "/usr\nhello\n");
}

TEST(OutputOf, OfAProgramThatIsNotThereIsAnError) {
  const auto nothing = OutputOf({{"/nonexist/program"}});
  ASSERT_FALSE(nothing.ok());
  EXPECT_THAT(nothing.error().text, HasSubstr("start '/nonexist/program'"));
}

}  // namespace
}  // namespace dtrun
