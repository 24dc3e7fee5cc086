#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/stacks/place.h"

namespace dtrun::stacks {
namespace {

const std::vector<std::string> kProgram = {
    "def fetch():",                 // 1
    "    wait()",                   // 2
    "",                             // 3
    "def train(step):",             // 4
    "    try:",                     // 5
    "        step()",               // 6
    "    except ValueError as e:",  // 7
    "        log(e)",               // 8
    "        # try again",          // 9
    "        if e:",                // 10
    "            fetch()",          // 11
    "    finally:",                 // 12
    "        close()",              // 13
    "    fetch()",                  // 14
    "",                             // 15
    "exception = train(fetch)",     // 16
    "except_for = fetch()",         // 17
    "try: fetch()",                 // 18
    "except OSError: fetch()",      // 19
};

std::string Line(const std::string& file, int line) {
  return file == "t.py" ? kProgram.at(static_cast<std::size_t>(line) - 1) : "";
}

bool Handles(std::vector<Frame> frames, bool cut = false) {
  PythonThread thread;
  thread.cut = cut;
  thread.frames = std::move(frames);
  return MayHandleError(thread, Line);
}

TEST(MayHandleError, InAClauseOfAnyFrame) {
  EXPECT_TRUE(Handles({{"t.py", "fetch", 2}, {"t.py", "train", 11}, {"t.py", "<module>", 16}}));
  EXPECT_TRUE(Handles({{"t.py", "train", 8}, {"t.py", "<module>", 16}}));
  EXPECT_TRUE(Handles({{"t.py", "fetch", 2}, {"t.py", "<module>", 19}}));
  EXPECT_TRUE(Handles({{"t.py", "train", 13}, {"t.py", "<module>", 16}}));
}

TEST(MayHandleError, NotBeforeAndBehindTheClauses) {
  EXPECT_FALSE(Handles({{"t.py", "train", 6}, {"t.py", "<module>", 16}}));
  EXPECT_FALSE(Handles({{"t.py", "fetch", 2}, {"t.py", "train", 14}, {"t.py", "<module>", 16}}));
  EXPECT_FALSE(Handles({{"t.py", "fetch", 2}, {"t.py", "<module>", 17}}));
  EXPECT_FALSE(Handles({{"t.py", "fetch", 2}, {"t.py", "<module>", 18}}));
}

TEST(MayHandleError, WithoutSource) {
  EXPECT_TRUE(Handles({{"<string>", "<module>", 2}}));
  EXPECT_FALSE(Handles({{"<frozen runpy>", "_run_code", 88}, {"t.py", "<module>", 17}}));
}

TEST(MayHandleError, WhileTheInterpreterEnds) {
  EXPECT_TRUE(Handles({{"/usr/lib/python3.11/threading.py", "_shutdown", 1553}}));
  EXPECT_FALSE(Handles({{"t.py", "fetch", 2}}, /*cut=*/true));
}

}  // namespace
}  // namespace dtrun::stacks
