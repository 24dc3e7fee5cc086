#include "core/output/message.h"

#include <gtest/gtest.h>

namespace dtrun::output {
namespace {

TEST(Message, StaysAsItIsWithoutColumnsAndColour) {
  const std::string text = "dtrun: job 'a' failed after 1.0 s: rank 0 exited with code 1\n  next: look\n\n";
  EXPECT_EQ(Message(text, 0, false), text);
}

TEST(Message, BreaksBetweenWordsUnderTheValue) {
  EXPECT_EQ(Message("  note       one two three four five", 24, false),
            "  note       one two\n             three four\n             five");
  EXPECT_EQ(Message("  next: compare these places", 20, false), "  next: compare\n    these places");
  EXPECT_EQ(Message("dtrun: a b", 8, false), "dtrun: a\n  b");
}

TEST(Message, NeverBreaksAWordNorWhatARankPrinted) {
  EXPECT_EQ(Message("  logs       /a/long/path/of/a/run/directory", 20, false),
            "  logs\n    /a/long/path/of/a/run/directory");
  EXPECT_EQ(Message("    | a long line of a rank's output", 20, false),
            "    | a long line of a rank's output");
}

TEST(Message, CountsCharactersAndNotBytes) { EXPECT_EQ(Message("äöü äöü", 7, false), "äöü äöü"); }

TEST(Message, PaintsByMeaning) {
  EXPECT_EQ(Message("dtrun: job 'a' failed after 1 s", 0, true),
            "\033[1;31mdtrun: job 'a' failed after 1 s\033[0m");
  EXPECT_EQ(Message("dtrun: job 'a' succeeded: 1 rank", 0, true),
            "\033[32mdtrun: job 'a' succeeded: 1 rank\033[0m");
  EXPECT_EQ(Message("dtrun: host b has joined: restarting all ranks", 0, true),
            "\033[33mdtrun: host b has joined: restarting all ranks\033[0m");
  EXPECT_EQ(Message("  warning    slow", 0, true), "\033[33m  warning\033[0m    slow");
  EXPECT_EQ(Message("  next: look", 0, true), "\033[1m  next:\033[0m look");
  EXPECT_EQ(Message("    | next: look", 0, true), "    | next: look");
}

TEST(Message, PaintsEachLineOfABrokenOne) {
  EXPECT_EQ(Message("dtrun: job 'a' failed", 12, true),
            "\033[1;31mdtrun: job\033[0m\n\033[1;31m  'a' failed\033[0m");
}

}  // namespace
}  // namespace dtrun::output
