#include "core/comm/family.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "core/comm/self.h"
#include "core/comm/testing/local_spaces.h"

namespace dtrun::comm {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// Like real backends: makes a communicator once all its ranks have arrived.
dtrun_status MakeTogether(dtrun_instance* instance, const dtrun_comm_params* params, dtrun_backend_comm** out,
                          dtrun_error* err) {
  if (params->kv != nullptr && params->size > 1) {
    const auto count = params->kv->Add("in", 1);
    if (count && *count == params->size) (void)params->kv->Set("go", "");
    if (!params->kv->Get("go", std::chrono::minutes(1))) return DTRUN_TIMEOUT;
  }
  return SelfBackend().comm_create(instance, params, out, err);
}

// Ranks are threads, each with its world and family over one key-value store. The backend is self's, because
// these tests are about which ranks meet.
struct Rank {
  Rank(testing::LocalSpaces& spaces, int rank, int size, int host, std::chrono::milliseconds timeout)
      : family([&](std::string prefix) { return spaces.Space(std::move(prefix)); }) {
    Making making;
    making.backend = SelfBackend();
    making.backend.comm_create = MakeTogether;
    making.backend_name = "self";
    making.name = "world";
    making.rank = rank;
    making.size = size;
    making.host_count = 2;
    making.node_rank = host;
    making.timeout = timeout;
    making.report = [this](const Error& failure) {
      reports.push_back(fmt::format("{} of {}", failure.Id(), failure.peer));
    };
    making.report_of_part = [this](const Error& failure, const std::vector<int>& members) {
      reports.push_back(
          fmt::format("{} of {} among {}", failure.Id(), failure.peer, fmt::join(members, " ")));
    };
    world = std::move(dtrun_comm::Create(std::move(making))).value();
  }
  std::unique_ptr<dtrun_comm> world;
  Family family;
  std::vector<std::string> reports;
};

class Families : public ::testing::Test {
 protected:
  static constexpr int kSize = 4;
  void Meet(std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
    for (int r = 0; r < kSize; ++r) {
      ranks_.push_back(std::make_unique<Rank>(spaces_, r, kSize, r / 2, timeout));
    }
  }
  // Runs `body(rank number, rank)` on these ranks at once; returns its text by rank.
  template <class Body>
  std::vector<std::string> On(const std::vector<int>& who, Body&& body) {
    std::vector<std::string> texts(kSize);
    std::vector<std::thread> threads;
    for (const int r : who) {
      const auto i = static_cast<std::size_t>(r);
      threads.emplace_back([&, r, i] { texts[i] = body(r, *ranks_[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    return texts;
  }
  // "name rank/size hosts", or the error.
  static std::string Text(const Result<dtrun_comm*>& made) {
    if (!made) return made.error().text;
    if (*made == nullptr) return "none";
    const Making& m = (*made)->making();
    return m.name + " " + std::to_string(m.rank) + "/" + std::to_string(m.size) + " hosts " +
           std::to_string(m.host_count);
  }
  std::vector<std::string> Split(const std::vector<int>& colors, const std::vector<int>& keys) {
    return On({0, 1, 2, 3}, [&](int r, Rank& rank) {
      const auto i = static_cast<std::size_t>(r);
      return Text(rank.family.Split(*rank.world, colors[i], keys[i]));
    });
  }

  testing::LocalSpaces spaces_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

TEST_F(Families, SplitByColorAndNumberByKeyThenRank) {
  Meet();
  EXPECT_THAT(Split({0, 1, 0, 1}, {0, 0, 0, 0}),
              ElementsAre("world.1:0 0/2 hosts 2", "world.1:1 0/2 hosts 2", "world.1:0 1/2 hosts 2",
                          "world.1:1 1/2 hosts 2"));
  EXPECT_THAT(Split({5, 5, 5, -1}, {2, 1, 1, 0}),
              ElementsAre("world.2:5 2/3 hosts 2", "world.2:5 0/3 hosts 2", "world.2:5 1/3 hosts 2", "none"));
  EXPECT_THAT(Split({0, 0, 1, 2}, {0, -1, 0, 0}),
              ElementsAre("world.3:0 1/2 hosts 1", "world.3:0 0/2 hosts 1", "world.3:1 0/1 hosts 1",
                          "world.3:2 0/1 hosts 1"));
}

TEST_F(Families, SplitWhatWasSplit) {
  Meet();
  const auto texts = On({0, 1, 2, 3}, [](int r, Rank& rank) {
    const auto half = rank.family.Split(*rank.world, r / 2, 0);
    if (!half) return half.error().text;
    return Text(rank.family.Split(**half, 0, -r));
  });
  EXPECT_THAT(texts, ElementsAre("world.1:0.1:0 1/2 hosts 1", "world.1:0.1:0 0/2 hosts 1",
                                 "world.1:1.1:0 1/2 hosts 1", "world.1:1.1:0 0/2 hosts 1"));
}

TEST_F(Families, TakeASubsetInTheOrderOfItsList) {
  Meet();
  const std::vector<std::int32_t> list = {3, 0}, pair = {1, 0};
  const auto make = [&](const std::vector<std::int32_t>& ranks) {
    return [&](int, Rank& rank) { return Text(rank.family.Subset(*rank.world, ranks)); };
  };
  EXPECT_THAT(On({0, 3}, make(list)),
              ElementsAre("world.{3,0} 1/2 hosts 2", "", "", "world.{3,0} 0/2 hosts 2"));
  EXPECT_THAT(On({0, 1}, make(pair)), Contains("world.{1,0} 0/2 hosts 1"));
  EXPECT_THAT(On({0, 3}, make(list)), Contains("world.{3,0}#2 0/2 hosts 2")) << "names are never used twice";
}

TEST_F(Families, NameLongListsByTheirHash) {
  Making making;
  making.backend = SelfBackend();
  making.name = "world";
  making.size = 100;
  making.timeout = std::chrono::milliseconds(1);
  const auto world = std::move(dtrun_comm::Create(std::move(making))).value();
  std::vector<std::int32_t> list;
  for (int r = 0; r < 99; ++r) list.push_back(r);
  Family family{Family::Spaces()};  // the others do not join
  const std::string name = Text(family.Subset(*world, list));
  EXPECT_THAT(name, AllOf(HasSubstr("world.{99 ranks "), HasSubstr("} 0/99")));
  std::swap(list[1], list[2]);
  Family other{Family::Spaces()};
  EXPECT_NE(Text(other.Subset(*world, list)), name);
}

TEST_F(Families, RefuseListsThatMakeNoSense) {
  Meet();
  Rank& rank = *ranks_[1];
  const auto refused = [&](const std::vector<std::int32_t>& list) {
    const auto made = rank.family.Subset(*rank.world, list);
    EXPECT_TRUE(!made && made.error().code == DTRUN_INVALID_ARGUMENT);
    return Text(made);
  };
  EXPECT_THAT(refused({}), HasSubstr("the list of ranks is empty"));
  EXPECT_THAT(refused({1, 4}), HasSubstr("rank 4 is outside 'world', which has ranks 0 to 3"));
  EXPECT_THAT(refused({1, -1}), HasSubstr("rank -1 is outside"));
  EXPECT_THAT(refused({1, 2, 1}), HasSubstr("rank 1 is in the list twice"));
  EXPECT_THAT(refused({0, 2}), HasSubstr("rank 1, which calls, is not in the list"));
}

TEST_F(Families, AreMadeByThreadsInAnyOrder) {
  Meet();
  std::vector<std::array<dtrun_comm*, 2>> parents(kSize);
  (void)On({0, 1, 2, 3}, [&](int r, Rank& rank) {
    for (dtrun_comm*& parent : parents[static_cast<std::size_t>(r)]) {
      parent = rank.family.Split(*rank.world, 0, -r).value();  // numbered from the last rank
    }
    return std::string();
  });
  const std::vector<std::int32_t> list = {0, 1, 2, 3};
  const auto make = [&](int r, Rank& rank, std::size_t which, bool split) {
    dtrun_comm& parent = *parents[static_cast<std::size_t>(r)][which];
    return Text(split ? rank.family.Split(parent, 0, 0) : rank.family.Subset(parent, list));
  };
  for (const bool split : {true, false}) {
    const auto texts = On({0, 1, 2, 3}, [&](int r, Rank& rank) {
      const std::size_t first = r % 2;  // half of the ranks reach the other parent first, and wait there
      std::string text;
      std::thread early([&] { text = make(r, rank, first, split); });
      const std::string parent = fmt::format("world.{}:0", first + 1), mine = std::to_string(kSize - 1 - r);
      const std::string key =
          split ? "split/" + parent + ".1/" + mine : "subset/" + parent + ".{0,1,2,3}/" + mine;
      const auto waits = [&] { return std::ranges::count(spaces_.Keys(), key) == 1; };
      while (!waits()) std::this_thread::yield();
      const std::string late = make(r, rank, 1 - first, split);
      early.join();
      return text.substr(text.find(' ')) + late.substr(late.find(' '));
    });
    EXPECT_THAT(texts, ElementsAre(" 3/4 hosts 2 3/4 hosts 2", " 2/4 hosts 2 2/4 hosts 2",
                                   " 1/4 hosts 2 1/4 hosts 2", " 0/4 hosts 2 0/4 hosts 2"));
  }
}

TEST_F(Families, NameTheRankThatDoesNotCall) {
  Meet(std::chrono::milliseconds(50));
  const auto texts =
      On({0, 1, 3}, [](int, Rank& rank) { return Text(rank.family.Split(*rank.world, 0, 0)); });
  EXPECT_EQ(texts[0], "rank 2 did not call split on 'world' within 50ms; every member has to");
  EXPECT_THAT(ranks_[0]->reports, ElementsAre("comm.absent of 2"));
}

TEST_F(Families, TellOfWhichRanksASubsetIs) {
  Meet(std::chrono::milliseconds(50));
  const std::vector<std::int32_t> list = {3, 1};
  const auto texts = On({3}, [&](int, Rank& rank) { return Text(rank.family.Subset(*rank.world, list)); });
  EXPECT_EQ(texts[3], "rank 1 did not call subset of {3,1} on 'world' within 50ms; every member has to");
  EXPECT_THAT(ranks_[3]->reports, ElementsAre("comm.absent of 1 among 3 1"));
}

TEST_F(Families, ReportPeersByTheirRankInTheWorld) {
  Meet();
  const std::vector<std::int32_t> list = {3, 1};
  (void)On({1, 3}, [&](int, Rank& rank) { return Text(rank.family.Subset(*rank.world, list)); });
  dtrun_comm* made = nullptr;
  (void)On({1, 3}, [&](int r, Rank& rank) {
    const auto again = rank.family.Subset(*rank.world, list);
    if (r == 3) made = again.ok() ? *again : nullptr;
    return Text(again);
  });
  ASSERT_NE(made, nullptr);
  made->making().report({DTRUN_REMOTE_FAILURE, "is gone", 1});
  made->making().report({DTRUN_TIMEOUT, "timed out"});
  EXPECT_THAT(ranks_[3]->reports, ElementsAre("remote_failure of 1 among 3 1", "timeout of -1 among 3 1"));
}

TEST_F(Families, KeepTheKeysOfEveryCommunicatorApart) {
  Meet();
  (void)Split({0, 0, 1, 1}, {0, 0, 0, 0});
  std::vector<std::string> keys = spaces_.Keys();
  EXPECT_THAT(keys, Each(MatchesRegex("(split/world.1|(turn|making|comm)/world.1:[01])/.*")));
  std::erase_if(keys, [](const std::string& key) { return !key.starts_with("split/"); });
  EXPECT_THAT(keys, ElementsAre("split/world.1/0", "split/world.1/1", "split/world.1/2", "split/world.1/3"));
  Rank& rank = *ranks_[0];
  const std::vector<std::int32_t> alone = {0};
  const auto made = rank.family.Subset(*rank.world, alone);
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE((*made)->making().kv->Set("mine", "1").ok());
  EXPECT_THAT(spaces_.Keys(), Contains("comm/world.{0}/mine"));
}

TEST_F(Families, FreeOneAndEndTheRest) {
  Meet();
  Rank& rank = *ranks_[0];
  const std::vector<std::int32_t> alone = {0};
  const auto first = rank.family.Subset(*rank.world, alone);
  const auto second = rank.family.Subset(*rank.world, alone);
  ASSERT_TRUE(first.ok() && second.ok());
  dtrun_op barrier;
  DTRUN_INIT(barrier);
  barrier.kind = DTRUN_BARRIER;
  dtrun_work* work = nullptr;
  ASSERT_EQ((*first)->Start(barrier, &work, nullptr), DTRUN_OK);
  rank.family.Free(*first);
  EXPECT_EQ(work->comm, nullptr);
  dtrun_comm::Delete(work);
  EXPECT_EQ((*second)->Start(barrier, nullptr, nullptr), DTRUN_OK);
  rank.family.Free(rank.world.get());
  EXPECT_EQ(rank.world->Start(barrier, nullptr, nullptr), DTRUN_OK) << "the world is not the family's";
}

TEST_F(Families, MakeNothingOfACommunicatorThatFailed) {
  Meet();
  Rank& rank = *ranks_[0];
  ASSERT_EQ(rank.world->Abort("enough", nullptr), DTRUN_OK);
  const auto made = rank.family.Split(*rank.world, 0, 0);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, DTRUN_ABORTED);
  EXPECT_THAT(made.error().text, HasSubstr("'world' was aborted: enough"));
}

TEST(FamilyOfOne, NeedsNoStore) {
  Making making;
  making.backend = SelfBackend();
  making.name = "world";
  const auto world = std::move(dtrun_comm::Create(std::move(making))).value();
  Family family({});
  const auto made = family.Split(*world, 3, 0);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->making().name, "world.1:3");
  const auto none = family.Split(*world, -1, 0);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, nullptr);
}

}  // namespace
}  // namespace dtrun::comm
