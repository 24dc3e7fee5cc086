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
  EXPECT_EQ(ErrorIn({"Traceback (most recent call last):", "  File \"d.py\", line 11, in <module>",
                     "    raise ValueError(text)", "ValueError: bad shape", "got: 3", "hint: transpose it"}),
            "ValueError: bad shape");
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

TEST(OwnErrorPlaceIn, IsTheInnermostFrameOutsideLibraries) {
  EXPECT_EQ(OwnErrorPlaceIn(kWaited), "in all_reduce at train.py:6");
  EXPECT_EQ(
      OwnErrorPlaceIn({"Traceback (most recent call last):", "  File \"/home/u/a.py\", line 3, in <module>",
                       "    json.loads(text)", "    ~~~~~~~~~~^^^^^^",
                       "  File \"/opt/py/lib/python3.12/json/__init__.py\", line 346, in loads",
                       "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"}),
      "in json.loads at a.py:3");
  EXPECT_EQ(OwnErrorPlaceIn({"Traceback (most recent call last):", "  File \"<string>\", line 1, in <module>",
                             "ZeroDivisionError: division by zero"}),
            "at <string>:1");
  EXPECT_EQ(OwnErrorPlaceIn({"  File \"/home/u/a.py\", line 3", "    def f(:", "          ^",
                             "SyntaxError: invalid syntax"}),
            "at a.py:3");
}

TEST(OwnErrorPlaceIn, IsUnknownWithoutAFrameOfTheProgram) {
  EXPECT_EQ(
      OwnErrorPlaceIn({"  File \"/usr/lib/python3/dist-packages/torch/cuda/__init__.py\", line 9, in init",
                       "RuntimeError: no CUDA"}),
      "");
  EXPECT_EQ(OwnErrorPlaceIn({"  File \"/home/u/a.py\", line 3, in <module>", "KeyboardInterrupt"}), "");
}

const Lines kCrashed = {"step 3",
                        "Fatal Python error: Segmentation fault",
                        "",
                        "Thread 0x00007f03bf8716c0 (most recent call first):",
                        "  File \"/home/u/load.py\", line 7 in idle",
                        "",
                        "Current thread 0x00007f03c160ab80 [python3] (most recent call first):",
                        "  File \"/usr/lib/python3.11/ctypes/__init__.py\", line 519 in string_at",
                        "  File \"/home/u/train.py\", line 3 in crash",
                        "  File \"/home/u/train.py\", line 4 in <module>",
                        "",
                        "Extension modules: numpy.core._multiarray_umath (total: 1)"};

TEST(OwnCrashPlaceIn, IsOfTheThreadThatCrashed) {
  EXPECT_EQ(OwnCrashPlaceIn(kCrashed), "in ctypes.string_at at train.py:3");
  EXPECT_EQ(OwnCrashPlaceIn(kRaised), "");
  EXPECT_EQ(OwnCrashPlaceIn({kCrashed.begin() + 6, kCrashed.end()}), "")
      << "a dump that the program asked for";
  EXPECT_EQ(ErrorIn(kCrashed), "");
}

TEST(WithoutDumps, KeepsTheThreadThatCrashed) {
  EXPECT_EQ(WithoutDumps(kCrashed),
            (Lines{kCrashed[0], kCrashed[1], kCrashed[6], kCrashed[7], kCrashed[8], kCrashed[9]}));
  EXPECT_EQ(WithoutDumps(kWaited), kWaited);
}

TEST(WithoutDumps, LeavesOutNativeFrames) {
  EXPECT_EQ(WithoutDumps({"  what():  my own bug", "dtrun: process 7 got signal 6; SIGABRT in its thread 7:",
                          "[ 0] /lib/x86_64-linux-gnu/libc.so.6(+0x3c050)[0x7f41c565a050]",
                          "[node1:00007] [ 1] /tmp/u(main+0x6f)[0x55db041b176f]", "[info] [epoch 3]"}),
            (Lines{"  what():  my own bug",
                   "dtrun: process 7 got signal 6; SIGABRT in its thread 7:", "[info] [epoch 3]"}));
}

TEST(OnlyMarks, AreBelowASourceLine) {
  EXPECT_TRUE(OnlyMarks("    ~~~~^^^^^"));
  EXPECT_TRUE(OnlyMarks("[rank1]:            ^"));
  EXPECT_FALSE(OnlyMarks("    a ^ b"));
  EXPECT_FALSE(OnlyMarks(""));
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
