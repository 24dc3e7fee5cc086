#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>

#include "core/pmi/pmix_wire.h"
#include "core/pmi/server.h"
#include "core/wire/coder.h"

namespace dtrun::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Host 1 of two, with ranks 2 and 3. The test acts as its PMIx server.
class PmixServerTest : public ::testing::Test {
 protected:
  PmixServerTest() {
    std::string name = "/tmp/pmix_server_test.XXXXXX";
    folder_ = ::mkdtemp(name.data());
    Events events;
    events.offered = [this](Part part) { offered_.push_back(std::move(part)); };
    events.started = [this](int rank) { seen_.push_back("started " + std::to_string(rank)); };
    events.finished = [this](int rank) { seen_.push_back("finished " + std::to_string(rank)); };
    events.aborted = [this](int rank, int code, const std::string& text) {
      seen_.push_back("aborted " + std::to_string(rank) + " " + std::to_string(code) + " " + text);
    };
    events.said = [this](int rank, const std::string& text) { seen_.push_back(std::to_string(rank) + text); };
    events.lost = [this](const std::string& why) { lost_.push_back(why); };
    server_ = MakePmixServer(loop_, {folder_ / "disk", folder_ / "memory"}, std::move(events),
                             [this]() -> Result<UniqueFd> {
                               int ends[2];
                               EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
                               far_ = UniqueFd(ends[1]);
                               return UniqueFd(ends[0]);
                             });
  }
  ~PmixServerTest() override {
    server_ = nullptr;
    std::filesystem::remove_all(folder_);
  }

  // Starts everything except the ranks.
  void Begin() {
    ASSERT_TRUE(server_->Begin({Kind::kPmix, "job.0", {{"a", 0, 2}, {"b", 2, 2}}, 1}));
    Say(PmixReady{{{{"R", "2"}}, {{"R", "3"}}}});
    ASSERT_EQ(server_->Admit(2).value().variables.at("R"), "2");
    ASSERT_EQ(server_->Admit(3).value().variables.at("R"), "3");
  }

  void Say(const FromPmix& message) { SayBytes(Encode(message)); }
  void SayBytes(const std::string& bytes) {
    ASSERT_EQ(::send(far_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    Run();
  }
  void Run() {
    loop_.restart();
    loop_.poll();
  }
  ToPmix Hear() {
    for (;;) {
      Run();
      if (const auto frame = heard_.Next().value()) return DecodeToPmix(*frame).value();
      std::array<char, 65536> chunk;
      const ssize_t size = ::recv(far_.get(), chunk.data(), chunk.size(), 0);
      EXPECT_GT(size, 0);
      heard_.Append({chunk.data(), static_cast<std::size_t>(size)});
    }
  }

  boost::asio::io_context loop_;
  std::filesystem::path folder_;
  UniqueFd far_;
  wire::FrameReader heard_{1 << 30};
  std::vector<Part> offered_;
  std::vector<std::string> seen_, lost_;
  std::unique_ptr<Server> server_;
};

TEST_F(PmixServerTest, BringsWhatRanksDo) {
  Begin();
  EXPECT_EQ(std::get<PmixBegin>(Hear()).job.name, "job.0");
  Say(PmixStarted{3});
  Say(PmixSaid{3, " says"});
  Say(PmixFinished{3});
  Say(PmixAborted{2, 7, "enough"});
  EXPECT_THAT(seen_, ElementsAre("started 3", "3 says", "finished 3", "aborted 2 7 enough"));
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(PmixServerTest, TellsOnDemandWhatHasCome) {
  Begin();
  for (const FromPmix& message : {FromPmix(PmixStarted{2}), FromPmix(PmixFinished{2})}) {
    const std::string frame = Encode(message);
    ASSERT_EQ(::send(far_.get(), frame.data(), frame.size(), 0), static_cast<ssize_t>(frame.size()));
  }
  server_->Look();
  EXPECT_THAT(seen_, ElementsAre("started 2", "finished 2"));
  Run();
  EXPECT_EQ(seen_.size(), 2u);
}

TEST_F(PmixServerTest, AnswersFences) {
  Begin();
  Hear();
  Say(PmixFenced{0, {}, "all"});
  Say(PmixFenced{1, {1, 2}, "some"});
  Say(PmixFenced{2, {}, "again"});
  ASSERT_EQ(offered_.size(), 3u);
  EXPECT_EQ(offered_[0].hosts, (std::vector<int>{0, 1}));
  EXPECT_EQ(offered_[0].bytes, "all");
  EXPECT_NE(offered_[0].exchange, offered_[2].exchange);
  server_->Complete(offered_[2].exchange, std::string(1 << 20, 'x'));
  const auto complete = std::get<PmixAnswer>(Hear());
  EXPECT_EQ(complete.fence, 2u);
  EXPECT_TRUE(complete.complete);
  EXPECT_EQ(complete.bytes.size(), std::size_t{1} << 20);
  server_->Complete(offered_[0].exchange, Error{DTRUN_ABORTED, "over"});
  EXPECT_FALSE(std::get<PmixAnswer>(Hear()).complete);
  server_->Complete(offered_[0].exchange, std::string("twice"));  // no rank waits any more
  server_->Complete("pmix//99", std::string("unknown"));
  server_->Complete(offered_[1].exchange, std::string("last"));
  EXPECT_EQ(std::get<PmixAnswer>(Hear()).bytes, "last");
}

TEST_F(PmixServerTest, BelievesNothingThatMakesNoSense) {
  const std::vector<std::pair<FromPmix, std::string>> lies = {
      {PmixReady{}, "twice that it is ready"},
      {PmixStarted{1}, "rank 1 is not on this host"},
      {PmixStarted{-1}, "rank -1"},
      {PmixFinished{2}, "has not begun"},
      {PmixAborted{4, 1, ""}, "rank 4"},
      {PmixSaid{1 << 30, ""}, "not on this host"},
      {PmixFenced{1, {}, ""}, "do not count up"},
      {PmixFenced{0, {3, 2}, ""}, "a fence of ranks 3,2"},
      {PmixFenced{0, {2, 2}, ""}, "a fence of ranks 2,2"},
      {PmixFenced{0, {2, 4}, ""}, "a fence of ranks 2,4"},
      {PmixFenced{0, {0, 1}, ""}, "other hosts' ranks"},
  };
  for (const auto& [lie, why] : lies) {
    lost_.clear();
    Begin();
    Say(lie);
    ASSERT_EQ(lost_.size(), 1u) << why;
    EXPECT_THAT(lost_[0], HasSubstr(why));
    server_->End();
  }
  EXPECT_THAT(seen_, IsEmpty());
  EXPECT_THAT(offered_, IsEmpty());
}

TEST_F(PmixServerTest, EndsWithAStreamThatIsNone) {
  for (const std::string& bytes : {std::string("\xff\xff\xff\xff"), std::string("\1\0\0\0\x63", 5)}) {
    lost_.clear();
    Begin();
    SayBytes(bytes);
    ASSERT_EQ(lost_.size(), 1u);
    EXPECT_THAT(lost_[0], HasSubstr("broke its protocol"));
    server_->End();
  }
}

TEST_F(PmixServerTest, TellsOnceThatTheServerIsGone) {
  Begin();
  far_.Reset();
  Run();
  EXPECT_THAT(lost_, ElementsAre(""));
  server_->Complete("pmix//0", std::string("x"));
  server_->End();
  EXPECT_EQ(lost_.size(), 1u);
}

TEST_F(PmixServerTest, SaysWhyItDoesNotStart) {
  ASSERT_TRUE(server_->Begin({Kind::kPmix, "job.0", {{"a", 0, 1}}, 0}));
  Say(PmixRefused{"install libpmix2"});
  EXPECT_EQ(server_->Admit(0).error().text, "install libpmix2");
  ASSERT_TRUE(server_->Begin({Kind::kPmix, "job.1", {{"a", 0, 1}}, 0}));
  far_.Reset();
  EXPECT_THAT(server_->Admit(0).error().text, HasSubstr("ended while it started"));
}

TEST_F(PmixServerTest, LeavesNoFolderOfAJob) {
  Begin();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "memory/job.0"));
  server_->End();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "memory/job.0"));
}

}  // namespace
}  // namespace dtrun::pmi
