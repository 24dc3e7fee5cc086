#include "core/process/segments.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

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

class SegmentsTest : public ::testing::Test {
 protected:
  bool Exists(const std::string& name) const { return std::filesystem::exists(scratch_.path() / name); }
  testing::ScratchDir scratch_;
};

TEST_F(SegmentsTest, AreRemovedWhenAProcessOfTheJobHadThem) {
  Segments segments(scratch_.path());
  {
    const Mapped mapped(scratch_ / "torch_12_34");
    segments.Look(Own);
  }
  EXPECT_THAT(segments.Remove(), ElementsAre("torch_12_34"));
  EXPECT_FALSE(Exists("torch_12_34"));
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
    const Mapped seen(scratch_ / "torch_3_4_0");
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
