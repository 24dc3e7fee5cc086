#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/comm/shm/memory.h"
#include "core/store/testing/local_store.h"

namespace dtrun::shm {
namespace {

using ::testing::HasSubstr;

// What rank 1 prints in its own process after `leave`.
std::string SaidAfter(const store::testing::LocalStore& store, int host, void (*leave)()) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const store::Address address = store.AddressOf(1);
  const pid_t child = ::fork();
  if (child == 0) {
    leave();
    const auto client = store::Client::Connect(address);
    Reach reach;
    const Result<std::string> why =
        client ? reach.WhyNot(*(*client)->Space("sharing/"), 1, host) : client.error();
    const std::string text = why ? *why : "error: " + why.error().text;
    ::_exit(::write(ends[1], text.data(), text.size()) < 0 ? 1 : 0);
  }
  ::close(ends[1]);
  std::string said(512, '\0');
  const ssize_t size = ::read(ends[0], said.data(), said.size());
  said.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return said;
}

TEST(Reach, IsThereBetweenRanksOfOneHost) {
  const store::testing::LocalStore store;
  Reach first;
  EXPECT_EQ(*first.WhyNot(*store.Connect(0)->Space("sharing/"), 0, 0), "");
  EXPECT_EQ(SaidAfter(store, 0, [] {}), "");
}

TEST(Reach, IsNotAskedOfAnotherHost) {
  const store::testing::LocalStore store;
  EXPECT_EQ(*Reach().WhyNot(*store.Connect(0)->Space("sharing/"), 0, 0), "");  // its sample has gone
  EXPECT_EQ(SaidAfter(store, 1, [] {}), "");
}

TEST(Reach, EndsAtAUserNamespace) {
  const auto leave = [] {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(1);
  };
  const store::testing::LocalStore store;
  Reach first;
  EXPECT_EQ(*first.WhyNot(*store.Connect(0)->Space("sharing/"), 0, 0), "");
  const std::string said = SaidAfter(store, 0, leave);
  if (said.empty()) GTEST_SKIP() << "this user may not make user namespaces";
  EXPECT_EQ(said, "rank 1 is in another user namespace than rank 0");
}

TEST(Reach, EndsWhereTheMemoryCannotBeOpened) {
  const store::testing::LocalStore store;
  EXPECT_EQ(*Reach().WhyNot(*store.Connect(0)->Space("sharing/"), 0, 0), "");  // its sample has gone
  EXPECT_THAT(SaidAfter(store, 0, [] {}), HasSubstr("rank 1 cannot open '/proc/"));
}

}  // namespace
}  // namespace dtrun::shm
