#include "core/store/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "core/store/testing/local_store.h"

namespace dtrun::store {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LocalStore;

TEST(Client, ReadsWhatAnotherRankWrote) {
  LocalStore store;
  const auto a = store.Connect(0), b = store.Connect(1);
  ASSERT_TRUE(a->Space("s/")->Set("k", std::string("\0\xff", 2)).ok());
  EXPECT_EQ(*b->Space("s/")->Get("k", -1ns), std::string("\0\xff", 2));
  EXPECT_EQ(b->Space("t/")->TryGet("k").error().code, DTRUN_NOT_FOUND);
}

TEST(Client, CountsComparesAndErases) {
  LocalStore store;
  const auto client = store.Connect();
  const auto kv = client->Space("s/");
  EXPECT_EQ(*kv->Add("n", 2), 2);
  EXPECT_EQ(*kv->Add("n", 3), 5);
  EXPECT_TRUE(*kv->CompareSet("k", false, "", "one"));
  EXPECT_FALSE(*kv->CompareSet("k", false, "", "two"));
  EXPECT_TRUE(*kv->CompareSet("k", true, "one", ""));
  EXPECT_EQ(*kv->TryGet("k"), "");
  EXPECT_TRUE(*kv->Erase("k"));
  EXPECT_FALSE(*kv->Erase("k"));
  EXPECT_EQ(kv->Add("k2", 1).ok(), true);
}

TEST(Client, WaitsForAKeyThatComesLater) {
  LocalStore store;
  const auto client = store.Connect();
  const auto kv = client->Space("s/");
  auto waiting = std::async(std::launch::async, [&] { return kv->Get("late", 60s); });
  auto all = std::async(std::launch::async, [&] { return kv->WaitMany({"late", "later"}, 60s); });
  ASSERT_TRUE(kv->Set("late", "here").ok());
  EXPECT_EQ(*waiting.get(), "here");
  ASSERT_TRUE(kv->Set("later", "").ok());
  EXPECT_TRUE(all.get().ok());
}

TEST(Client, EndsEveryWaitInASpaceThatHasFailed) {
  LocalStore store;
  const auto a = store.Connect(0), b = store.Connect(1);
  const auto kv = a->Space("s/"), other = a->Space("t/");
  ASSERT_TRUE(kv->Set("there", "x").ok());
  auto waiting = std::async(std::launch::async, [&] { return kv->Get("late", 60s); });
  auto all = std::async(std::launch::async, [&] { return kv->WaitMany({"there", "late"}, -1ns); });
  auto elsewhere = std::async(std::launch::async, [&] { return other->Get("late", 60s); });
  ASSERT_TRUE(b->Space("s/")->Fail("rank 1 cannot join").ok());
  for (const Error& error : {waiting.get().error(), all.get().error(), kv->Get("late", -1ns).error(),
                             kv->TryGet("late").error()}) {
    EXPECT_EQ(error.code, DTRUN_REMOTE_FAILURE);
    EXPECT_EQ(error.text, "rank 1 cannot join");
  }
  EXPECT_EQ(*kv->Get("there", 0ns), "x");
  ASSERT_TRUE(other->Set("late", "came").ok());
  EXPECT_EQ(*elsewhere.get(), "came");
}

TEST(Client, NamesTheKeyThatDidNotAppearInTime) {
  LocalStore store;
  const auto client = store.Connect();
  const auto kv = client->Space("s/");
  const auto got = kv->Get("absent", 1ms);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, DTRUN_TIMEOUT);
  EXPECT_THAT(got.error().text, HasSubstr("'s/absent' did not appear within 1ms"));
  ASSERT_TRUE(kv->Set("a", "").ok());
  const Status waited = kv->WaitMany({"a", "b", "c"}, 0ns);
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, DTRUN_TIMEOUT);
  EXPECT_THAT(waited.error().text, HasSubstr("2 of 3 keys"));
}

TEST(Client, CarriesTheLargestValueAndRefusesALargerOne) {
  LocalStore store;
  const auto client = store.Connect();
  const auto kv = client->Space("s/");
  std::string value(DTRUN_KV_MAX_VALUE_BYTES, 'v');
  value.back() = 'w';
  ASSERT_TRUE(kv->Set("big", value).ok());
  EXPECT_EQ(*kv->Get("big", -1ns), value);
  EXPECT_TRUE(*kv->CompareSet("big", true, value, value));
  const Status refused = kv->Set("big", value + "x");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(refused.error().text, HasSubstr("'big'"));
}

TEST(Client, RefusesKeysThatAreEmptyOrTooLong) {
  LocalStore store;
  const auto client = store.Connect();
  const auto kv = client->Space("s/");
  EXPECT_EQ(kv->Set("", "v").error().code, DTRUN_INVALID_ARGUMENT);
  EXPECT_TRUE(kv->Set(std::string(DTRUN_KV_MAX_KEY_BYTES, 'k'), "v").ok());
  EXPECT_EQ(kv->Set(std::string(DTRUN_KV_MAX_KEY_BYTES + 1, 'k'), "v").error().code, DTRUN_INVALID_ARGUMENT);
}

TEST(Client, RefusesToJoinWithAnotherKeyOrGeneration) {
  LocalStore store(3);
  Address address = store.AddressOf(0);
  address.job_key = NewJobKey();
  const auto stranger = Client::Connect(address);
  ASSERT_FALSE(stranger.ok());
  EXPECT_EQ(stranger.error().code, DTRUN_FAILED_PRECONDITION);
  EXPECT_THAT(stranger.error().text, HasSubstr("job key"));

  address = store.AddressOf(0);
  address.generation = 2;
  const auto late = Client::Connect(address);
  ASSERT_FALSE(late.ok());
  EXPECT_THAT(late.error().text, HasSubstr("generation 2"));
  EXPECT_THAT(store.events().entries(), ElementsAre());
}

TEST(Client, SaysThatNoAgentListens) {
  LocalStore store;
  const Address address = store.AddressOf(0);
  store.Stop();
  const auto client = Client::Connect(address);
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, DTRUN_REMOTE_FAILURE);
  EXPECT_THAT(client.error().text, HasSubstr(address.socket.native()));
}

TEST(Client, EndsABlockedCallWhenTheAgentDies) {
  LocalStore store;
  const auto client = store.Connect();
  const auto kv = client->Space("s/");
  auto waiting = std::async(std::launch::async, [&] { return kv->Get("never", -1ns); });
  ASSERT_TRUE(kv->Set("k", "v").ok());
  store.Stop();
  const auto got = waiting.get();
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, DTRUN_REMOTE_FAILURE);
}

TEST(Client, AbortEndsBlockedAndLaterCallsThatWait) {
  LocalStore store;
  const auto client = store.Connect(0), other = store.Connect(1);
  const auto kv = client->Space("s/"), other_kv = other->Space("s/");  // the other is not aborted
  auto waiting = std::async(std::launch::async, [&] {
    EXPECT_TRUE(other_kv->Set("ready", "").ok());
    return kv->Get("never", -1ns);
  });
  ASSERT_TRUE(kv->Get("ready", 60s).ok());
  client->Abort("rank 3 is gone");
  client->Abort("another reason");
  const auto got = waiting.get();
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, DTRUN_ABORTED);
  EXPECT_THAT(got.error().text, HasSubstr("rank 3 is gone"));
  EXPECT_EQ(kv->Get("ready", 60s).error().code, DTRUN_ABORTED);
  EXPECT_TRUE(kv->Set("why", "x").ok());  // as the others may wait for its reason
  EXPECT_EQ(*other_kv->Get("why", 60s), "x");
}

TEST(Client, AbortReachesConnectionsThatWentFromCallToCall) {
  LocalStore store;
  const auto client = store.Connect(0), other = store.Connect(1);
  const auto kv = client->Space("s/"), other_kv = other->Space("s/");  // the other is not aborted
  std::vector<std::future<dtrun_status>> blocked;
  std::vector<std::string> ready;
  for (int t = 0; t < 8; ++t) {
    ready.push_back("ready" + std::to_string(t));
    blocked.push_back(std::async(std::launch::async, [&kv, &other_kv, key = ready.back()] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(kv->Add("n", 1).ok());
      EXPECT_TRUE(other_kv->Set(key, "").ok());
      return kv->Get("never", -1ns).error().code;
    }));
  }
  ASSERT_TRUE(kv->WaitMany(ready, 60s).ok());
  client->Abort("enough");
  for (auto& status : blocked) EXPECT_EQ(status.get(), DTRUN_ABORTED);
}

TEST(Client, TellsTheAgentWhoJoinedWhoLeftAndWhoIsBlamed) {
  LocalStore store;
  const auto client = store.Connect(4);
  ASSERT_TRUE(client->Space("s/")->Set("k", "v").ok());  // a second connection does not join
  client->Abort("enough");
  client->Report({DTRUN_REMOTE_FAILURE, "it went away", 1});
  client->Report({DTRUN_REMOTE_FAILURE, "so did it", 2}, {0, 2});
  client->Goodbye();
  EXPECT_THAT(store.events().entries(),
              ElementsAre("joined 4", "report 4: remote_failure of 1",
                          "report 4: remote_failure of 2 among 0 among 2", "left 4"));
}

TEST(Client, SixtyFourRanksMeetAtOnce) {
  constexpr int kRanks = 64;
  LocalStore store;
  std::vector<std::thread> ranks;
  std::atomic<int> met = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto client = store.Connect(rank);
      const auto kv = client->Space("meet/");
      std::vector<std::string> keys;
      for (int r = 0; r < kRanks; ++r) keys.push_back(std::to_string(r));
      if (!kv->Set(std::to_string(rank), "here").ok() || !kv->WaitMany(keys, 60s).ok()) return;
      if (!kv->Add("count", 1).ok()) return;
      ++met;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(met, kRanks);
  EXPECT_EQ(*store.Connect()->Space("meet/")->TryGet("count"), "64");
}

TEST(Client, ManyThreadsShareOneClient) {
  LocalStore store;
  const auto client = store.Connect();
  const auto kv = client->Space("s/");
  auto blocked = std::async(std::launch::async, [&] { return kv->Get("end", 60s); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(kv->Add("n", 1).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*kv->TryGet("n"), "320");
  ASSERT_TRUE(kv->Set("end", "").ok());
  EXPECT_TRUE(blocked.get().ok());
}

}  // namespace
}  // namespace dtrun::store
