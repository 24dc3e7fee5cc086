#include "core/node/rank_contacts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "core/base/port_user.h"
#include "core/process/testing.h"

namespace dtrun::node {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// `*port` 0: any free port.
int Listen(std::uint16_t* port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd, 5) != 0) std::abort();
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  *port = ntohs(address.sin_port);
  return fd;
}

int Connect(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) std::abort();
  return fd;
}

class RankContactsTest : public ::testing::Test {
 protected:
  ~RankContactsTest() override { EndChildren(); }

  void EndChildren() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    children_.clear();
  }

  // Starts a process that has mapped a library with this name, has run `act`, and waits to be killed. Empty:
  // no library. Returns the result of `act`.
  std::uint16_t Start(const std::string& library, const std::function<std::uint16_t()>& act) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    const UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    if (!library.empty()) std::ofstream(scratch_ / library) << "a library";
    const pid_t child = ::fork();
    if (child == 0) {
      if (!library.empty()) {
        const int file = ::open((scratch_ / library).c_str(), O_RDONLY);
        if (::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED) ::_exit(1);
      }
      const std::uint16_t result = act();
      if (::write(writer.get(), &result, sizeof(result)) != sizeof(result)) ::_exit(1);
      for (;;) ::pause();
    }
    children_.push_back(child);
    writer.Reset();
    std::uint16_t result = 0;
    EXPECT_EQ(::read(reader.get(), &result, sizeof(result)), static_cast<ssize_t>(sizeof(result)));
    return result;
  }

  void Watch(std::vector<std::uint16_t> ports,
             RankContacts::Times times = {std::chrono::hours(1), std::chrono::hours(1),
                                          std::chrono::hours(1)}) {
    joining_.emplace(
        loop_, std::move(ports), children_, false,
        [this](const protocol::RendezvousSeen& looked) { told_.push_back(looked); }, times);
  }

  process::testing::ScratchDir scratch_;
  boost::asio::io_context loop_;
  std::vector<pid_t> children_;
  std::uint16_t port_ = 0;
  std::vector<protocol::RendezvousSeen> told_;
  std::optional<RankContacts> joining_;
};

const auto kNothing = [] { return std::uint16_t{0}; };
constexpr RankContacts::Times kSoon{std::chrono::milliseconds(1), std::chrono::milliseconds(1),
                                    std::chrono::milliseconds(1)};

TEST_F(RankContactsTest, TellsWhenRanksShouldHaveJoinedLongAgo) {
  Start("libtorch_cpu.so.1", kNothing);
  Watch({1}, kSoon);
  while (told_.empty() || !told_.back().late) loop_.run_one();
  ASSERT_FALSE(told_.empty());
  EXPECT_THAT(told_.back().frameworks, ElementsAre("PyTorch"));
  EXPECT_TRUE(told_.back().late);
  EXPECT_FALSE(told_.back().joined);
}

TEST(RankContactsTimes, BeginAgainOnceAFrameworkIsLoaded) {
  const RankContacts::Times times;
  using std::chrono::milliseconds;
  EXPECT_EQ(times.Next(milliseconds(500), false, false), milliseconds(1'000));
  EXPECT_EQ(times.Next(milliseconds(8'000), false, false), milliseconds(8'000));
  EXPECT_EQ(times.Next(milliseconds(8'000), false, true), milliseconds(1'000));
  EXPECT_EQ(times.Next(milliseconds(8'000), true, true), milliseconds(16'000));
  EXPECT_EQ(times.Next(milliseconds(32'000), true, true), milliseconds(32'000));
}

TEST_F(RankContactsTest, SaysNothingOfProgramsWithoutAFramework) {
  Start("", kNothing);
  Watch({1});
  joining_->Look();
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(RankContactsTest, SeesARankThatWaitsForOthersWhereTheyMeet) {
  const std::uint16_t port = Start("libtorch_cpu.so", [] {
    std::uint16_t any = 0;
    Listen(&any);
    return any;
  });
  Watch({port});
  joining_->Look();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_TRUE(told_[0].joined);
}

TEST_F(RankContactsTest, SeesThatRanksMetElsewhere) {
  const std::uint16_t port = Start("libtorch_cpu.so", [] {
    std::uint16_t any = 0;
    Listen(&any);
    return any;
  });
  Watch({1});
  joining_->Look();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_FALSE(told_[0].joined);
  const UniqueFd other(Connect(port));
  joining_->Look();
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_TRUE(told_[1].joined);
}

TEST_F(RankContactsTest, DoesNotTakeARankThatTalksToItselfForTwo) {
  Start("libmpi.so.40.30.4", [] {
    std::uint16_t any = 0;
    Listen(&any);
    Connect(any);
    return any;
  });
  Watch({1});
  joining_->Look();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_THAT(told_[0].frameworks, ElementsAre("Open MPI"));
  EXPECT_FALSE(told_[0].joined);
}

// Makes and closes a connection to a port that no longer listens; the kernel remembers it.
std::uint16_t MeetAndPart() {
  std::uint16_t port = 0;
  const UniqueFd listener(Listen(&port));
  const UniqueFd client(Connect(port));
  const UniqueFd server(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ::shutdown(client.get(), SHUT_RDWR);
  return port;
}

bool IsOver(std::uint16_t port, std::chrono::milliseconds time) {
  return std::ranges::any_of(TcpSocketsSeenBy(::getpid()), [&](const TcpSocket& socket) {
    return socket.remote_port == port && socket.over > time;
  });
}

TEST_F(RankContactsTest, SeesAfterwardsThatRanksHadMet) {
  Start("libtorch_cpu.so", kNothing);
  Watch({MeetAndPart()});
  joining_->Look();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_TRUE(told_[0].joined);
}

TEST_F(RankContactsTest, SeesAConnectionBetweenTwoRanksAtAnyPort) {
  const UniqueFd listener(Listen(&port_));
  Start("libtorch_cpu.so", [this] {
    Connect(port_);
    return port_;
  });
  Start("", [&listener] {
    if (::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC) < 0) ::_exit(1);
    return std::uint16_t{0};
  });
  Watch({1});
  joining_->Look();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_TRUE(told_[0].joined);
}

TEST_F(RankContactsTest, AnMpiThatStartedAsASingletonWorksAlone) {
  Start("libmpi.so.40.30.4", [this] {
    std::ofstream(scratch_ / "mca_ess_singleton.so") << "a part";
    const int file = ::open((scratch_ / "mca_ess_singleton.so").c_str(), O_RDONLY);
    if (::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED) ::_exit(1);
    return std::uint16_t{0};
  });
  Watch({1});
  joining_->Look();
  ASSERT_FALSE(told_.empty());
  EXPECT_TRUE(told_.back().alone);
}

TEST_F(RankContactsTest, KnowsConnectionsOfJobsBefore) {
  const std::uint16_t port = MeetAndPart();
  ASSERT_TRUE(process::testing::Eventually([&] { return IsOver(port, std::chrono::milliseconds(500)); }));
  Start("libtorch_cpu.so", kNothing);
  Watch({port});
  joining_->Look();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_FALSE(told_[0].joined);
}

TEST_F(RankContactsTest, TellsNothingOfRanksThatEndedBeforeItLooked) {
  Start("libtorch_cpu.so", kNothing);
  Watch({MeetAndPart()});
  EndChildren();
  joining_->Look();
  EXPECT_THAT(told_, IsEmpty());
}

TEST(FrameworksIn, NamesThoseThatRanksJoinWith) {
  const auto line = [](const std::string& file) {
    return "7f00-7f01 r-xp 00000000 fe:00 1234                       /usr/lib/x86_64-linux-gnu/" + file +
           "\n";
  };
  EXPECT_THAT(FrameworksIn(line("libc.so.6") + line("libtorch_cpu.so.1.13.0") + line("libnccl.so.2")),
              ElementsAre("PyTorch"));
  EXPECT_THAT(FrameworksIn(line("libmpich.so.12.2.1")), ElementsAre("MPICH"));
  EXPECT_THAT(FrameworksIn(line("libnccl.so.2")), ElementsAre("NCCL"));
  EXPECT_THAT(FrameworksIn(line("libtensorflow_framework.so.2") + line("libmpi.so.40.30.4")),
              ElementsAre("TensorFlow", "Open MPI"));
  EXPECT_THAT(FrameworksIn(line("libdtrun.so.1")), IsEmpty());
}

}  // namespace
}  // namespace dtrun::node
