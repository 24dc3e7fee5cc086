#include "core/contract/member_mark.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "core/contract/mapping.h"

namespace dtrun::contract {
namespace {

const std::string kBackend = "demo";

// What the recorder shows of rank 1 after a process has run `play`.
std::string After(const std::function<void()>& play) {
  const RecorderMapping recorder = *RecorderMapping::Create(2);
  const pid_t child = ::fork();
  if (child == 0) {
    MemberMarks::Use(recorder.fd(), 1);
    play();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(MembersUnderWay(recorder.recorder_memory(), 0).members, "");
  return MembersUnderWay(recorder.recorder_memory(), 1).members;
}

TEST(MemberMark, OutlivesAProcessThatEndsInAMember) {
  EXPECT_EQ(After([] {
              { InMember before(kBackend, 0); }
              InMember now(kBackend, 0);
              ::_exit(0);
            }),
            "backend 'demo', in an operation");
  EXPECT_EQ(After([] {
              const std::string call = "backend 'demo', in its init";
              const InMember now = InMember::Of(call);
              ::_exit(0);
            }),
            "backend 'demo', in its init");
}

TEST(MemberMark, IsGoneWhenTheMemberHasReturned) {
  EXPECT_EQ(After([] {
              const std::string call = "backend 'demo', making 'world'";
              const InMember outer = InMember::Of(call);
              InMember inner(kBackend, 0);
            }),
            "");
  EXPECT_EQ(After([] { std::thread([] { InMember one(kBackend, 0); }).join(); }), "");
}

TEST(MemberMark, SaysNothingOfAProcessThatEndsByExit) {
  EXPECT_EQ(After([] {
              InMember now(kBackend, 0);
              MemberMarks::Retire();
              ::_exit(0);
            }),
            "");
}

TEST(MemberMark, OfEachThreadThatIsInOne) {
  const std::string other = "other";
  EXPECT_EQ(After([&] {
              const std::string call = "backend 'demo', in its init";
              const InMember now = InMember::Of(call);
              std::thread([&] {
                InMember its(other, 0);
                ::_exit(0);
              }).join();
            }),
            "backend 'demo', in its init; backend 'other', in an operation");
}

TEST(MemberMark, OfAFaultIsTheOnlyOneAndMayBeOver) {
  const auto fail = [](bool over) {
    return After([over] {
      InMember now(kBackend, 0);
      if (::fork() == 0) {
        MemberMarks::Fault("backend 'copy', in an operation");
        ::_exit(0);
      }
      ::wait(nullptr);
      MemberMarks::Fault("backend 'first', in an operation");
      EXPECT_FALSE(MemberMarks::Fault("backend 'second', in an operation"));
      if (over) MemberMarks::FaultOver();
      ::_exit(0);
    });
  };
  EXPECT_EQ(fail(false), "backend 'first', in an operation");
  EXPECT_EQ(fail(true), "backend 'demo', in an operation");
}

TEST(MemberMark, StaysWhenACopyOfTheProcessExits) {
  EXPECT_EQ(After([] {
              InMember now(kBackend, 0);
              const pid_t copy = ::fork();
              if (copy == 0) std::exit(0);
              ::waitpid(copy, nullptr, 0);
              ::_exit(0);
            }),
            "backend 'demo', in an operation");
}

TEST(MemberMark, TellsTheMainThread) {
  const RecorderMapping recorder = *RecorderMapping::Create(2);
  for (const int rank : {0, 1}) {
    const pid_t child = ::fork();
    if (child == 0) {
      MemberMarks::Use(recorder.fd(), rank);
      const auto play = [] {
        InMember now(kBackend, 0);
        ::_exit(0);
      };
      if (rank == 0) play();
      std::thread(play).join();
    }
    ::waitpid(child, nullptr, 0);
  }
  EXPECT_TRUE(MembersUnderWay(recorder.recorder_memory(), 0).main_thread);
  EXPECT_FALSE(MembersUnderWay(recorder.recorder_memory(), 1).main_thread);
}

TEST(MemberMark, DoesNotBelieveWhatStandsThere) {
  const RecorderMapping recorder = *RecorderMapping::Create(1);
  MemberMark* const marks = recorder.recorder_memory().MarksOf(0);
  for (int i = 0; i < kMarks; ++i) {
    marks[i].taken = 1;
    marks[i].depth = i == 0 ? 1 : -5;
    std::memset(marks[i].text, 'x', sizeof marks[i].text);
    std::memcpy(marks[i].text, "backend 'x", 10);
  }
  EXPECT_EQ(MembersUnderWay(recorder.recorder_memory(), 0).members,
            "backend 'x" + std::string(kMarkTextBytes - 10, 'x'));
}

// Small numbers in all words, as a write past the end of an array leaves them.
TEST(MemberMark, DoesNotBelieveNumbers) {
  const RecorderMapping recorder = *RecorderMapping::Create(1);
  MemberMark& mark = *recorder.recorder_memory().MarksOf(0);
  for (const char byte : {'\2', '@', 'a'}) {
    mark.taken = kByMainThread;
    mark.depth = 1;
    std::memset(mark.text, 0, sizeof mark.text);
    for (std::size_t at = 0; at < kMarkTextBytes; at += 8) mark.text[at] = byte;
    const UnderWay under_way = MembersUnderWay(recorder.recorder_memory(), 0);
    EXPECT_EQ(under_way.members, "");
    EXPECT_FALSE(under_way.main_thread);
  }
}

TEST(MemberMark, IsOverdueWhenItsLimitHasPassed) {
  using std::chrono::seconds;
  const RecorderMapping recorder = *RecorderMapping::Create(1);
  const auto overdue = [&](seconds within) { return MembersOverdue(recorder.recorder_memory(), 0, within); };
  MemberMark& mark = *recorder.recorder_memory().MarksOf(0);
  std::strcpy(mark.text, "backend 'demo', in an operation");
  mark.taken = kByThread;
  mark.limit = 10'000'000'000;
  mark.entered = mark.watched = 7;
  mark.left_ms = 1000;
  EXPECT_FALSE(overdue(seconds(5)).soon);  // in no member
  mark.depth = 1;
  EXPECT_TRUE(overdue(seconds(5)).soon);
  EXPECT_FALSE(overdue(seconds(0)).soon);
  EXPECT_EQ(overdue(seconds(5)).members, "");
  mark.left_ms = 0;
  EXPECT_FALSE(overdue(seconds(5)).soon);
  EXPECT_EQ(overdue(seconds(5)).members, "backend 'demo', in an operation");
  mark.limit = 0;
  EXPECT_EQ(overdue(seconds(5)).members, "");
  mark.limit = 10'000'000'000;
  mark.entered = 8;  // another member than the one that was watched
  EXPECT_EQ(overdue(seconds(5)).members, "");
  EXPECT_FALSE(overdue(seconds(5)).soon);
}

TEST(MemberMark, GivesTheThreadAStackForFaults) {
  const auto has_one = [] {
    stack_t now{};
    return sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) == 0;
  };
  std::thread([&] {
    { InMember now(kBackend, 0); }
    EXPECT_TRUE(has_one());
    stack_t first{}, again{};
    sigaltstack(nullptr, &first);
    { const InMember now = InMember::Of("backend 'other', in its init"); }
    sigaltstack(nullptr, &again);
    EXPECT_EQ(first.ss_sp, again.ss_sp);
  }).join();
}

TEST(MemberMark, WorksWithoutARecorder) {
  MemberMarks::Use(-1, 0);
  InMember now(kBackend, 0);
}

}  // namespace
}  // namespace dtrun::contract
