#include "core/verdict/traceback.h"

#include <gtest/gtest.h>

namespace dtrun::verdict {
namespace {

using Lines = std::vector<std::string>;

const Lines kRaised = {
    "Traceback (most recent call last):", "  File \"/home/u/train.py\", line 9, in <module>",
    "    raise ValueError(text)", "ValueError: the true cause"};
const Lines kWaited = {"Traceback (most recent call last):",
                       "  File \"/home/u/train.py\", line 6, in <module>",
                       "    dist.all_reduce(t)",
                       "  File \"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\", "
                       "line 1322, in all_reduce",
                       "    work.wait()",
                       "RuntimeError: Timed out waiting 20000ms for recv operation to complete"};

TEST(ErrorIn, IsTheEndOfATraceback) {
  EXPECT_EQ(ErrorIn(kRaised), "ValueError: the true cause");
  EXPECT_EQ(ErrorIn({"[rank1]: Traceback (most recent call last):", "[rank1]: my.Odd"}), "my.Odd");
  EXPECT_EQ(ErrorIn({"Traceback (most recent call last):", "KeyboardInterrupt"}), "");
  EXPECT_EQ(ErrorIn({"loss: 0.3", "done"}), "");
  EXPECT_EQ(ErrorIn({}), "");
}

TEST(ErrorIn, IsWhatTheInterpreterSaysOfAScriptThatIsMissing) {
  const std::string missing =
      "python3: can't open file '/home/u/trian.py': [Errno 2] No such file or directory";
  EXPECT_EQ(ErrorIn({missing}), missing);
  EXPECT_EQ(ErrorIn({"/usr/bin/python3.11: No module named trian"}),
            "/usr/bin/python3.11: No module named trian");
  EXPECT_EQ(ErrorIn({"loader: No module named x"}), "");
}

TEST(ErrorPlaceIn, IsTheCallThatTheTracebackEndsIn) {
  EXPECT_EQ(ErrorPlaceIn(kWaited), "in all_reduce at train.py:6");
  EXPECT_EQ(ErrorPlaceIn({"done"}), "");
}

TEST(RaisedByTheProgram, IsSoWhereItsOwnLineRaised) {
  EXPECT_TRUE(RaisedByTheProgram(kRaised));
  EXPECT_FALSE(RaisedByTheProgram(kWaited));
  EXPECT_FALSE(RaisedByTheProgram({"RuntimeError: Socket Timeout"}));
  Lines library = kRaised;
  library[1] = "  File \"/usr/lib/python3/dist-packages/torch/distributed/rendezvous.py\", line 3, in start";
  EXPECT_FALSE(RaisedByTheProgram(library));
}

TEST(RaisedByTheProgram, IsNotSoOfAnErrorThatItWrapped) {
  Lines wrapped = kWaited;
  wrapped.insert(wrapped.end(),
                 {"", "The above exception was the direct cause of the following exception:", ""});
  wrapped.insert(wrapped.end(), kRaised.begin(), kRaised.end());
  EXPECT_FALSE(RaisedByTheProgram(wrapped));
}

TEST(EndedAThread, IsSaidInFrontOfTheTraceback) {
  EXPECT_FALSE(EndedAThread(kRaised));
  for (const char* said : {"Exception in thread Thread-1 (load):", "Process SpawnProcess-2:"}) {
    Lines lines = kRaised;
    lines.insert(lines.begin(), said);
    EXPECT_TRUE(EndedAThread(lines)) << said;
  }
}

TEST(FromLastTraceback, LeavesOutWhatWasBefore) {
  Lines lines = kWaited;
  lines.insert(lines.end(), kRaised.begin(), kRaised.end());
  EXPECT_EQ(FromLastTraceback(lines), kRaised);
  EXPECT_EQ(FromLastTraceback({"a", "b"}), (Lines{"a", "b"}));
}

}  // namespace
}  // namespace dtrun::verdict
