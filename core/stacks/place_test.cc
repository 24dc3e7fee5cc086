#include "core/stacks/place.h"

#include <gtest/gtest.h>

#include "core/stacks/python.h"

namespace dtrun::stacks {
namespace {

constexpr char kTorch[] = "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py";

Frame At(const std::string& file, int line, const std::string& function, int column = -1, int end = -1) {
  return {file, function, line, column, end};
}

Place PlaceIn(std::vector<Frame> frames, const std::string& line = "") {
  return PlaceOf(frames, [line](const std::string&, int) { return line; });
}

TEST(PlaceOf, NamesTheCallOfTheUsersOwnLine) {
  const std::string line = "        time.sleep(10000)";
  const Place place = PlaceIn({At("/home/u/train.py", 40, "main", 8, 25)}, line);
  EXPECT_EQ(place.what, "time.sleep");
  EXPECT_EQ(place.where, "train.py:40");
  EXPECT_EQ(place.line, "time.sleep(10000)");
  EXPECT_EQ(place.stand, Stand::kElsewhere);
}

TEST(PlaceOf, TakesTheLastCallOfAChain) {
  const std::string line = "x = lib(None).wait_for(f(1), 2)";
  EXPECT_EQ(PlaceIn({At("t.py", 1, "f", 4, 31)}, line).what, "wait_for");
  EXPECT_EQ(PlaceIn({At("t.py", 1, "f", 4, 99)}, line).what, "");  // not on this line
}

TEST(PlaceOf, ShowsTheLineWhereNothingIsCalled) {
  const Place place = PlaceIn({At("t.py", 7, "f", 4, 20)}, "    while True: pass");
  EXPECT_EQ(place.what, "");
  EXPECT_EQ(place.line, "while True: pass");
  EXPECT_EQ(place.stand, Stand::kElsewhere);
}

TEST(PlaceOf, KnowsACollectiveBelowTheUsersLine) {
  const Place place = PlaceIn({At(kTorch, 1322, "all_reduce"), At("/home/u/train.py", 42, "step")});
  EXPECT_EQ(place.what, "all_reduce");
  EXPECT_FALSE(place.joins);
  EXPECT_TRUE(PlaceIn({At(kTorch, 862, "_new_process_group_helper"), At("t.py", 1, "f")}).joins);
  EXPECT_EQ(place.where, "train.py:42");
  EXPECT_EQ(place.stand, Stand::kWaits);
}

// `import torch` imports torch.distributed.
TEST(PlaceOf, TakesTheImportOfAModuleOfCollectivesForNone) {
  const Place place =
      PlaceIn({At(kTorch, 40, "<module>"), At("<frozen importlib._bootstrap>", 1, "_load"),
               At("/x/site-packages/torch/_jit_internal.py", 39, "<module>"), At("train.py", 1, "<module>")});
  EXPECT_EQ(place.stand, Stand::kElsewhere);
}

TEST(CollectiveIn, IsTheFunctionThatAThreadWasStartedWith) {
  const Frame thread = At("/usr/lib/python3.11/threading.py", 975, "Thread.run");
  EXPECT_EQ(CollectiveIn({At(kTorch, 1322, "all_reduce"), thread}), "all_reduce");
  EXPECT_EQ(CollectiveIn({thread}), "");
}

TEST(PlaceOf, LooksBehindTorchsWrapper) {
  const std::string wrapper = "/x/site-packages/torch/distributed/c10d_logger.py";
  const Place place = PlaceIn({At("/x/site-packages/torch/distributed/distributed_c10d.py", 9, "barrier"),
                               At(wrapper, 83, "wrapper"), At("train.py", 3, "<module>")});
  EXPECT_EQ(place.what, "barrier");
  EXPECT_EQ(place.stand, Stand::kWaits);
}

TEST(PlaceOf, TakesNoLibraryForTheProgramThatStandsOutsideThePackages) {
  const Place place = PlaceIn({At("/opt/pytorch/torch/distributed/rendezvous.py", 9, "_create_c10d_store"),
                               At("train.py", 3, "<module>")});
  EXPECT_EQ(place.what, "_create_c10d_store");
  EXPECT_TRUE(place.joins);
  EXPECT_EQ(place.where, "train.py:3");
  EXPECT_EQ(place.stand, Stand::kWaits);
}

TEST(PlaceOf, KnowsDtrunsOwnCalls) {
  for (const char* const folder : {"/usr/lib/python3/dist-packages", "/opt/dtrun/python"}) {
    const Place place =
        PlaceIn({At(std::string(folder) + "/dtrun/communicator.py", 84, "Communicator.allreduce"),
                 At("/home/u/train.py", 8, "<module>")});
    EXPECT_EQ(place.stand, Stand::kWaits);
    EXPECT_EQ(place.what, "allreduce");
    EXPECT_EQ(place.where, "train.py:8");
  }
}

TEST(PlaceOf, ALauncherIsNoCollective) {
  const Place place = PlaceIn({At("/usr/lib/python3.11/subprocess.py", 1955, "Popen.wait"),
                               At("/x/site-packages/torch/distributed/run.py", 5, "main")});
  EXPECT_EQ(place.stand, Stand::kElsewhere);
  EXPECT_EQ(place.what, "subprocess.Popen.wait");
}

TEST(PlaceOf, DoesNotJudgeABackwardStepWhichMayWaitInside) {
  const Place place =
      PlaceIn({At("/x/site-packages/torch/autograd/__init__.py", 197, "backward"),
               At("/x/site-packages/torch/_tensor.py", 488, "Tensor.backward"), At("t.py", 5, "f")});
  EXPECT_EQ(place.stand, Stand::kMayWait);
  EXPECT_TRUE(place.trains);
  EXPECT_EQ(place.what, "Tensor.backward");
}

TEST(PlaceOf, KnowsThatACheckpointIsWritten) {
  const Frame script = At("t.py", 5, "f");
  EXPECT_TRUE(PlaceIn({At("/x/site-packages/torch/serialization.py", 850, "_save"),
                       At("/x/site-packages/torch/serialization.py", 620, "save"), script})
                  .saves);
  EXPECT_FALSE(PlaceIn({At("/x/site-packages/torch/serialization.py", 1000, "load"), script}).saves);
}

TEST(PlaceOf, AQueueOfTheProgramIsNoCollective) {
  const Place place = PlaceIn({At("/usr/lib/python3.11/threading.py", 320, "Condition.wait"),
                               At("/usr/lib/python3.11/queue.py", 171, "Queue.get"), At("t.py", 40, "f")});
  EXPECT_EQ(place.stand, Stand::kElsewhere);
  EXPECT_EQ(place.what, "queue.Queue.get");
}

TEST(PlaceOf, NamesAModuleAsItIsImported) {
  const auto what = [](const std::string& file, const std::string& function) {
    return PlaceIn({At("/usr/lib/python3.11/" + file, 1, function), At("t.py", 40, "f")}).what;
  };
  EXPECT_EQ(what("concurrent/futures/_base.py", "Future.result"), "concurrent.futures.Future.result");
  EXPECT_EQ(what("asyncio/base_events.py", "BaseEventLoop.run_forever"), "asyncio.BaseEventLoop.run_forever");
  EXPECT_EQ(what("json/__init__.py", "load"), "json.load");
}

TEST(PlaceOf, KnowsCallsWhoseInsidePythonDoesNotSee) {
  EXPECT_EQ(PlaceIn({At("t.py", 1, "f", 0, 20)}, "comm.Allreduce(a, b)").stand, Stand::kWaits);
  EXPECT_EQ(PlaceIn({At("t.py", 1, "f", 0, 11)}, "work.wait()").stand, Stand::kWaits);
  EXPECT_EQ(PlaceIn({At("t.py", 1, "f", 0, 11)}, "loss.item()").stand, Stand::kMayWait);
  EXPECT_EQ(PlaceIn({At("t.py", 1, "f", 0, 14)}, "lock.acquire()").stand, Stand::kElsewhere);
}

// A hand-made location table in CPython 3.11's format, with PEP 626's entries one by one.
TEST(Locate, ReadsEveryKindOfEntry) {
  const std::string table = {
      char(0x80 | (15 << 3) | 0),                 // one unit without a line
      char(0x80 | (1 << 3) | 1),  0x24,           // two units, this line, columns 10 to 14
      char(0x80 | (11 << 3) | 0), 4,    30,       // one unit, next line, columns 4 to 30
      char(0x80 | (13 << 3) | 0), 6,              // one unit, three lines on, without columns
      char(0x80 | (14 << 3) | 0), 3,    1,  5, 9  // one unit, a line back, over two lines
  };
  const auto at = [&](long unit) {
    Frame frame;
    Locate(table, 100, unit, &frame);
    return frame;
  };
  EXPECT_EQ(at(0).line, 0);
  EXPECT_EQ(at(1).line, 100);
  EXPECT_EQ(at(2).column, 10);
  EXPECT_EQ(at(2).end_column, 14);
  EXPECT_EQ(at(3).line, 101);
  EXPECT_EQ(at(3).end_column, 30);
  EXPECT_EQ(at(4).line, 104);
  EXPECT_EQ(at(4).column, -1);
  EXPECT_EQ(at(5).line, 103);
  EXPECT_EQ(at(5).column, -1);
  EXPECT_EQ(at(99).line, 0);
}

TEST(Locate, EndsWithAnyTable) {
  for (int seed = 0; seed < 256; ++seed) {
    std::string table;
    for (int i = 0; i < 64; ++i) table.push_back(static_cast<char>(seed * 31 + i * (seed | 1)));
    Frame frame;
    Locate(table, 1, 1L << 40, &frame);
    EXPECT_EQ(frame.line, 0);
  }
}

TEST(PollsARequest, InALoopAboveTheLine) {
  const auto polls = [](std::vector<std::string> lines) {
    Frame frame = At("t.py", static_cast<int>(lines.size()), "f", 0, 0);
    return PollsARequest(
        {frame}, [&](const std::string&, int line) { return lines[static_cast<std::size_t>(line - 1)]; });
  };
  EXPECT_TRUE(polls({"while not work.is_completed(): time.sleep(0.001)"}));
  EXPECT_TRUE(polls({"while not request.Test():", "  time.sleep(0.001)"}));
  EXPECT_TRUE(polls({"while True:", "  if request.test(): break", "", "  time.sleep(0.001)"}));
  EXPECT_FALSE(polls({"while not ready():", "  time.sleep(0.001)"}));
  EXPECT_FALSE(polls({"work.is_completed()", "while True:", "  time.sleep(0.001)"}));
  EXPECT_FALSE(polls({"while not work.is_completed():", "  def f():", "    time.sleep(0.001)"}));
  EXPECT_FALSE(polls({"time.sleep(0.001)"}));
}

}  // namespace
}  // namespace dtrun::stacks
