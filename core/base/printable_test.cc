#include <gtest/gtest.h>

#include "core/base/text.h"

namespace dtrun {
namespace {

TEST(Printable, LeavesTextAlone) { EXPECT_EQ(Printable("rank 0: größer ✓"), "rank 0: größer ✓"); }

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("a\nb\x1b[2Jc\x7f\t"), "a\\nb\\u001b[2Jc\\u007f\\u0009");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");  // CSI as a single character
}

TEST(Printable, ShowsTheBytesOfNoCharacter) {
  EXPECT_EQ(Printable("\xc2"), "\\xc2");
  EXPECT_EQ(Printable("\x9b"
                      "31m caf\xe9 caf\u00e9 \xff\n"),
            "\\x9b31m caf\\xe9 caf\u00e9 \\xff\\n");
}

TEST(Printable, ShowsWhatTurnsTheDirectionOfText) {
  EXPECT_EQ(Printable("a\u202egpj.sh"), "a\\u202egpj.sh");
  EXPECT_EQ(Printable("\u2066x\u2069\u2028"), "\\u2066x\\u2069\\u2028");
}

}  // namespace
}  // namespace dtrun
