#include "core/process/segments.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <csignal>

#include "core/process/testing.h"

namespace dtrun::process {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A mapping of a file by this process.
class Mapped {
 public:
  explicit Mapped(const std::string& file) {
    const UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (::ftruncate(fd.get(), kBytes) != 0) std::abort();
    base_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  }
  ~Mapped() { ::munmap(base_, kBytes); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

 private:
  static constexpr std::size_t kBytes = 4096;
  void* base_ = nullptr;
};

std::vector<pid_t> Own() { return {::getpid()}; }

// "torch_PID_34" with the pid of this process, which plays the job.
std::string OwnTorch() { return fmt::format("torch_{}_34", ::getpid()); }

class SegmentsTest : public ::testing::Test {
 protected:
  bool Exists(const std::string& name) const { return std::filesystem::exists(scratch_.path() / name); }
  testing::ScratchDir scratch_{"/dev/shm"};  // this file system grants leases
};

TEST_F(SegmentsTest, AreRemovedWhenAProcessOfTheJobHadThem) {
  Segments segments(scratch_.path());
  {
    const Mapped mapped(scratch_ / OwnTorch());
    segments.Look(Own);
  }
  EXPECT_THAT(segments.Remove(), ElementsAre(OwnTorch()));
  EXPECT_FALSE(Exists(OwnTorch()));
}

TEST_F(SegmentsTest, StayWhenTheyWereThereBefore) {
  const Mapped mapped(scratch_ / "psm_old");
  Segments segments(scratch_.path());
  segments.Look(Own);
  EXPECT_THAT(segments.Remove(), IsEmpty());
}

TEST_F(SegmentsTest, StayWhenTheProgramNamedThem) {
  Segments segments(scratch_.path());
  {
    const Mapped mapped(scratch_ / "imagenet.bin");
    segments.Look(Own);
  }
  EXPECT_THAT(segments.Remove(), IsEmpty());
}

TEST_F(SegmentsTest, StayWhenNoProcessOfTheJobWasSeenWithThem) {
  Segments segments(scratch_.path());
  { const Mapped mapped(scratch_ / "psm_other"); }
  segments.Look(Own);
  EXPECT_THAT(segments.Remove(), IsEmpty());
}

TEST_F(SegmentsTest, OfTorchWaitWhenTheyAppearedAndNobodyHadThem) {
  { const Mapped before(scratch_ / "torch_1_2_0"); }
  Segments segments(scratch_.path());
  { const Mapped other(scratch_ / "psm_other"); }
  EXPECT_FALSE(segments.TorchsWait());
  {
    const Mapped seen(scratch_ / OwnTorch());
    segments.Look(Own);
  }
  EXPECT_FALSE(segments.TorchsWait());
  { const Mapped unseen(scratch_ / "torch_5_6_0"); }
  EXPECT_TRUE(segments.TorchsWait());
}

TEST_F(SegmentsTest, StayWhileAnyProcessHasThem) {
  Segments segments(scratch_.path());
  const Mapped mapped(scratch_ / "psm_shared");
  segments.Look(Own);
  EXPECT_THAT(segments.Remove(), IsEmpty());
  EXPECT_TRUE(Exists("psm_shared"));
}

// Its maker closed it; a rank opened it later.
TEST_F(SegmentsTest, StayWhenNobodyOfTheJobHadThemAtFirst) {
  Segments segments(scratch_.path());
  { const Mapped made(scratch_ / "psm_dataset"); }
  segments.Note(Own);
  {
    const Mapped attached(scratch_ / "psm_dataset");
    segments.Look(Own);
  }
  EXPECT_THAT(segments.Remove(), IsEmpty());
  EXPECT_TRUE(Exists("psm_dataset"));
}

TEST_F(SegmentsTest, StayWhenAProcessOutsideTheJobHadThemAtFirst) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Segments segments(scratch_.path());
  const pid_t other = ::fork();
  if (other == 0) {
    const Mapped made(scratch_ / "psm_served"), named(scratch_ / fmt::format("torch_{}_1", ::getpid()));
    [[maybe_unused]] const ssize_t told = ::write(ends[1], "x", 1);
    for (;;) ::pause();
  }
  char up = 0;
  ASSERT_EQ(::read(ends[0], &up, 1), 1);
  const std::string torch = fmt::format("torch_{}_1", other);
  {
    const Mapped attached(scratch_ / "psm_served"), too(scratch_ / torch);
    segments.Look(Own);
  }
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  EXPECT_THAT(segments.Remove(), IsEmpty());
  EXPECT_TRUE(Exists("psm_served"));
  EXPECT_TRUE(Exists(torch));
}

TEST_F(SegmentsTest, StayWhileSomebodyHasThemOpenThatCannotBeSeen) {
  Segments segments(scratch_.path());
  {
    const Mapped mapped(scratch_ / "psm_open");
    segments.Look(Own);
  }
  const UniqueFd open(::open((scratch_ / "psm_open").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(segments.Remove(), IsEmpty());
  EXPECT_TRUE(Exists("psm_open"));
}

TEST_F(SegmentsTest, AreRemovedWhenTheirNameTellsOfAMakerThatHasClosedThem) {
  Segments segments(scratch_.path());
  { const Mapped made(scratch_ / OwnTorch()); }
  segments.Note(Own);
  {
    const Mapped received(scratch_ / OwnTorch());
    segments.Look(Own);
  }
  EXPECT_THAT(segments.Remove(), ElementsAre(OwnTorch()));
}

TEST_F(SegmentsTest, AreToldOfByTheKernel) {
  Segments segments(scratch_.path());
  const auto told = [&](int timeout_ms) {
    pollfd poll{segments.descriptor(), POLLIN, 0};
    return ::poll(&poll, 1, timeout_ms) == 1;
  };
  EXPECT_FALSE(told(0));
  for (const char* name : {"psm_one", "psm_two"}) {
    const Mapped mapped(scratch_ / name);
    EXPECT_TRUE(told(60'000)) << name;
    segments.Note(Own);
    EXPECT_FALSE(told(0)) << name;
  }
}

TEST_F(SegmentsTest, StayWhenAnotherHasTakenTheName) {
  Segments segments(scratch_.path());
  {
    const Mapped mapped(scratch_ / "psm_taken");
    segments.Look(Own);
  }
  std::filesystem::rename(scratch_ / "psm_taken", scratch_ / "psm_old");  // keeps its inode in use
  { const Mapped other(scratch_ / "psm_taken"); }
  EXPECT_THAT(segments.Remove(), IsEmpty());
}

}  // namespace
}  // namespace dtrun::process
