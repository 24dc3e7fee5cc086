#include "core/stacks/native.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::stacks {
namespace {

constexpr char kSleeps[] =
    "PID 18067 - process\n"
    "TID 18067:\n"
    "#0  0x00007faf60b05503 __GI___clock_nanosleep - /usr/lib/x86_64-linux-gnu/libc.so.6\n"
    "    ../sysdeps/unix/sysv/linux/clock_nanosleep.c:71:10\n"
    "#1  0x00007faf60b09e53 __GI___nanosleep - /usr/lib/x86_64-linux-gnu/libc.so.6\n"
    "    ../sysdeps/unix/sysv/linux/nanosleep.c:25:13\n"
    "#2  0x0000560dab0101c3 void std::this_thread::sleep_for<long, std::ratio<1l, 1l> "
    ">(std::chrono::duration<long, std::ratio<1l, 1l> > const&) - /home/me/train\n"
    "    /usr/include/c++/12/bits/this_thread_sleep.h:80:20\n"
    "#3  0x0000560dab0101c3 network::Train(int) - /home/me/train\n"
    "    /home/me/src/train.cc:5:81\n"
    "#4  0x0000560dab0100a4 main - /home/me/train\n"
    "    /home/me/src/train.cc:6:32\n"
    "TID 18070:\n"
    "#0  0x00007faf60b05503 worker() - /home/me/train\n";

TEST(Native, ReadsWhatEuStackPrints) {
  const auto frames = FramesOfEuStack(kSleeps, 18067);
  ASSERT_EQ(frames.size(), 5u);
  EXPECT_EQ(frames[2].function, "std::this_thread::sleep_for");
  EXPECT_EQ(frames[3].function, "network::Train");
  EXPECT_EQ(frames[3].module, "/home/me/train");
  EXPECT_EQ(frames[3].file, "/home/me/src/train.cc");
  EXPECT_EQ(frames[3].line, 5);
  EXPECT_EQ(FramesOfEuStack(kSleeps, 18070).size(), 1u);
  EXPECT_TRUE(FramesOfEuStack(kSleeps, 1).empty());
}

TEST(Native, NamesTheProgramsOwnLineAndWhatItCalls) {
  const auto place = PlaceOf(FramesOfEuStack(kSleeps, 18067));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->what, "std::this_thread::sleep_for");
  EXPECT_EQ(place->where, "train.cc:5");
  EXPECT_EQ(place->within, "network::Train");
  EXPECT_FALSE(place->waits);
}

TEST(Native, WithoutDebugInformationNamesTheFunction) {
  const auto place =
      PlaceOf(FramesOfEuStack("TID 7:\n"
                              "#0  0x00007f01 clock_nanosleep@GLIBC_2.2.5 - /usr/lib/libc.so.6\n"
                              "#1  0x00007f02 __nanosleep - /usr/lib/libc.so.6\n"
                              "#2  0x00005603 rest() - /home/me/train\n"
                              "#3  0x00005604 main - /home/me/train\n",
                              7));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->what, "nanosleep");
  EXPECT_EQ(place->where, "");
  EXPECT_EQ(place->within, "rest");
}

TEST(Native, KnowsWhatWaitsForRanks) {
  const auto place = PlaceOf({{"opal_progress", "/usr/lib/x86_64-linux-gnu/libopen-pal.so.40", "", 0},
                              {"PMPI_Allreduce", "/opt/mpi/lib/libmpi.so.40", "", 0},
                              {"main", "/home/me/train", "/home/me/train.cc", 9}});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->what, "PMPI_Allreduce");
  EXPECT_TRUE(place->waits);
}

TEST(Native, KnowsWhatWaitsForAThreadOfTheProcess) {
  constexpr char kLocked[] =
      "TID 7:\n"
      "#0  0x00007f01 futex_wait - /usr/lib/libc.so.6\n"
      "#1  0x00007f02 ___pthread_mutex_lock - /usr/lib/libc.so.6\n"
      "#2  0x00005604 main - /home/me/train\n"
      "TID 8:\n"
      "#0  0x00007f01 poll - /usr/lib/libc.so.6\n"
      "#1  0x00007f03 MPI_Recv - /opt/mpi/lib/libmpi.so.40\n"
      "#2  0x00005605 receive - /home/me/train\n";
  const auto place = PlaceOf(FramesOfEuStack(kLocked, 7));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->what, "pthread_mutex_lock");
  EXPECT_TRUE(place->waits_for_thread);
  EXPECT_FALSE(place->waits);
  EXPECT_FALSE(AnyWaits(FramesOfEuStack(kLocked, 7)));
  EXPECT_TRUE(AnyWaits(FramesOfEuStack(kLocked, kAllThreads))) << "which may wait for a rank";
}

TEST(Native, KnowsASocketOfTheProgram) {
  const NativeFrame own{"main", "/home/me/train", "/home/me/train.cc", 9};
  const NativeFrame system{"__libc_recv", "/usr/lib/libc.so.6", "", 0};
  EXPECT_TRUE(PlaceOf({system, own})->waits_for_peer);
  EXPECT_FALSE(PlaceOf({system, {"PMPI_Recv", "/usr/lib/libmpi.so.40", "", 0}, own})->waits_for_peer);
}

TEST(Native, NamesAReadAsItsProgramDoes) {
  const auto place = PlaceOf({{"__GI___libc_read", "/usr/lib/libc.so.6", "", 0},
                              {"main", "/home/me/train", "/home/me/train.cc", 9}});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->what, "read");
}

TEST(Native, KnowsOpenMpisFinalizeByTheFunctionThatItJumpsTo) {
  const auto place = PlaceOf({{"ompi_mpi_finalize", "/usr/lib/x86_64-linux-gnu/libmpi.so.40", "", 0},
                              {"main", "/home/me/train", "/home/me/train.cc", 9}});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->what, "MPI_Finalize");
  EXPECT_TRUE(place->waits);
}

TEST(Native, NamesTheProgramsLineAndNotThatOfAHeader) {
  const char header[] = "/opt/dtrun/include/dtrun/dtrun.hpp";
  const NativeFrame barrier{"dtrun_barrier", "/opt/dtrun/lib/libdtrun.so.1", "", 0};
  const NativeFrame check{"dtrun::detail::check", "/home/me/train", "/opt/dtrun/include/dtrun/work.hpp", 86};
  const NativeFrame own{"main", "/home/me/train", "/home/me/train.cc", 9};
  const auto inlined = PlaceOf({barrier, {"operator()", "/home/me/train", header, 268}, check, own});
  ASSERT_TRUE(inlined);
  EXPECT_EQ(inlined->where, "train.cc:9");
  EXPECT_TRUE(PlaceOf({barrier, check, own})->waits);
  EXPECT_EQ(PlaceOf({barrier, check, own})->what, "dtrun_barrier");
  EXPECT_EQ(PlaceOf({barrier, {"dtrun::Communicator::barrier", "/home/me/train", header, 267}, own})->what,
            "dtrun::Communicator::barrier");
}

TEST(Native, OfAStrippedProgramNothingIsSaid) {
  EXPECT_FALSE(PlaceOf({{"nanosleep", "/usr/lib/libc.so.6", "", 0}, {"", "/home/me/train", "", 0}}));
  EXPECT_FALSE(PlaceOf({}));
}

TEST(Native, ReadsWhatGdbPrints) {
  constexpr char kText[] =
      "[New LWP 19]\n"
      "Thread 2 (Thread 0x7f01 (LWP 19) \"o\"):\n"
      "#0  0x0000000000002001 in other () at o.cc:1\n"
      "\n"
      "Thread 1 (Thread 0x7f09ebe86440 (LWP 18) \"o\"):\n"
      "#0  0x0000000000001503 in __GI___clock_nanosleep (clock_id=...) at "
      "../sysdeps/unix/sysv/linux/clock_nanosleep.c:71\n"
      "#1  0x0000000000002103 in train (x=...) at src/o.cc:5\n"
      "#2  0x0000000000002104 in ?? ()\n"
      "[Inferior 1 (process 18) detached]\n";
  constexpr char kMaps[] =
      "00001000-00002000 r-xp 00000000 fe:00 1     /usr/lib/libc.so.6\n"
      "00002000-00003000 r-xp 00000000 fe:00 2     /home/me/o\n";
  const auto frames = FramesOfGdb(kText, 18, kMaps);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[1].module, "/home/me/o");
  const auto place = PlaceOf(frames);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->what, "clock_nanosleep");
  EXPECT_EQ(place->where, "o.cc:5");
}

TEST(Native, NamesAreShortAndWithoutControls) {
  const std::string name = "\x1b[31m" + std::string(5000, 'x');
  const auto frames = FramesOfEuStack("TID 7:\n#0  0x01 " + name + " - /tmp/\x1b[0m\n", 7);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_LT(frames[0].function.size(), 200u);
  EXPECT_EQ(frames[0].function.find('\x1b'), std::string::npos);
  EXPECT_EQ(frames[0].module.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace dtrun::stacks
