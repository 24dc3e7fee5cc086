#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/store/connection.h"
#include "core/store/testing/local_store.h"

namespace dtrun::store {
namespace {

using testing::LocalStore;

// Sends a descriptor to every client.
class Giver {
 public:
  Giver() {
    auto made = Listener::Listen(
        loop_, socket(), [this](Socket client) { SendDescriptor(client.native_handle(), given_.get()); });
    EXPECT_TRUE(made.ok());
    if (made) listener_ = *std::move(made);
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~Giver() {
    loop_.stop();
    thread_.join();
  }
  std::filesystem::path socket() const { return store_.folder() / "giver"; }
  // Checks that it holds "it".
  static void ExpectIt(const Result<UniqueFd>& got) {
    ASSERT_TRUE(got.ok()) << got.error().text;
    char text[2] = {};
    EXPECT_EQ(::pread(got->get(), text, 2, 0), 2);
    EXPECT_EQ(std::string(text, 2), "it");
  }

 private:
  static UniqueFd Make() {
    UniqueFd memory(::memfd_create("given", MFD_CLOEXEC));
    EXPECT_EQ(::write(memory.get(), "it", 2), 2);
    return memory;
  }
  LocalStore store_;
  const UniqueFd given_ = Make();
  boost::asio::io_context loop_;
  std::unique_ptr<Listener> listener_;
  std::thread thread_;
};

TEST(Descriptor, ReachesWhoeverConnects) {
  const Giver giver;
  Giver::ExpectIt(ReceiveDescriptor(giver.socket()));
}

TEST(Descriptor, ReachesARankThatDoesNotSeeThePath) {
  const Giver giver;
  ASSERT_EQ(::unlink(giver.socket().c_str()), 0);
  Giver::ExpectIt(ReceiveDescriptor(giver.socket()));
}

TEST(Descriptor, IsNoneWhereNobodyListens) {
  const Result<UniqueFd> got = ReceiveDescriptor("/nowhere/giver");
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().text.find("give it one of them"), std::string::npos) << got.error().text;
}

TEST(Descriptor, NamesTheLimitThatLeavesNoRoomForIt) {
  const Giver giver;
  const auto receive = [&] {
    // Room for the connection alone: the lowest free number.
    const int lowest = ::dup(0);
    const rlimit small{static_cast<rlim_t>(lowest) + 1, static_cast<rlim_t>(lowest) + 1};
    if (lowest < 0 || ::setrlimit(RLIMIT_NOFILE, &small) != 0) ::_exit(2);
    ::close(lowest);
    const Result<UniqueFd> got = ReceiveDescriptor(giver.socket());
    ::_exit(!got && got.error().text.find("raise `ulimit -n`") != std::string::npos ? 0 : 1);
  };
  EXPECT_EXIT(receive(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace dtrun::store
