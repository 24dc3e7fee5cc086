#include "core/store/torch_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/store/testing/torch_bytes.h"

namespace dtrun::store {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using namespace testing;  // NOLINT: of this folder

const std::string kStop = Byte(0), kCanceled = Byte(1);

class TorchTableTest : public ::testing::Test {
 protected:
  TorchTableTest()
      : table_([this](TorchTable::Client client, std::string bytes) { sent_.emplace_back(client, bytes); },
               {.bytes = 4096, .reply_bytes = 1024}) {}

  // The messages sent because of it, with their clients.
  std::vector<std::pair<TorchTable::Client, std::string>> Do(TorchTable::Client client, TorchOp op,
                                                             std::vector<std::string> fields = {},
                                                             std::int64_t number = 0) {
    sent_.clear();
    const Status taken = table_.Take(client, {op, std::move(fields), number});
    error_ = taken ? "" : taken.error().text;
    return sent_;
  }
  std::string Get(const std::string& key) { return Do(9, TorchOp::kGet, {key}).at(0).second; }

  std::vector<std::pair<TorchTable::Client, std::string>> sent_;
  std::string error_;
  TorchTable table_;
};

TEST_F(TorchTableTest, KeepsValuesAndCounters) {
  EXPECT_THAT(Do(1, TorchOp::kSet, {"k", "v"}), IsEmpty()) << "torch does not answer a set";
  EXPECT_EQ(Get("k"), Text("v"));
  EXPECT_EQ(Get("none"), Text("")) << "as the server on libuv";
  EXPECT_THAT(Do(1, TorchOp::kAdd, {"n"}, 5), ElementsAre(Pair(1, Number(5))));
  EXPECT_THAT(Do(1, TorchOp::kAdd, {"n"}, -7), ElementsAre(Pair(1, Number(-2))));
  EXPECT_EQ(Get("n"), Text("-2"));
  EXPECT_THAT(Do(1, TorchOp::kNumKeys), ElementsAre(Pair(1, Number(2))));
  EXPECT_THAT(Do(1, TorchOp::kCheck, {"k", "n"}), ElementsAre(Pair(1, Byte(0))));
  EXPECT_THAT(Do(1, TorchOp::kCheck, {"k", "x"}), ElementsAre(Pair(1, Byte(1))));
  Do(1, TorchOp::kAppend, {"k", "w"});
  Do(1, TorchOp::kMultiSet, {"a", "1", "b", "2"});
  EXPECT_THAT(Do(1, TorchOp::kMultiGet, {"k", "a", "b"}),
              ElementsAre(Pair(1, Text("vw") + Text("1") + Text("2"))));
  EXPECT_THAT(Do(1, TorchOp::kDeleteKey, {"k"}), ElementsAre(Pair(1, Number(1))));
  EXPECT_THAT(Do(1, TorchOp::kDeleteKey, {"k"}), ElementsAre(Pair(1, Number(0))));
  EXPECT_THAT(Do(1, TorchOp::kPing, {}, 77), ElementsAre(Pair(1, Number32(77))));
  Do(1, TorchOp::kAdd, {"a"}, 1);
  EXPECT_EQ(error_, "");
  Do(1, TorchOp::kSet, {"t", "text"});
  Do(1, TorchOp::kAdd, {"t"}, 1);
  EXPECT_THAT(error_, HasSubstr("and no number"));
}

TEST_F(TorchTableTest, ComparesAsTorchDoes) {
  EXPECT_THAT(Do(1, TorchOp::kCompareSet, {"k", "x", "y"}), ElementsAre(Pair(1, Text("x"))));
  EXPECT_THAT(Do(1, TorchOp::kCompareSet, {"k", "", "y"}), ElementsAre(Pair(1, Text("y"))));
  EXPECT_THAT(Do(1, TorchOp::kCompareSet, {"k", "x", "z"}), ElementsAre(Pair(1, Text("y"))));
  EXPECT_THAT(Do(1, TorchOp::kCompareSet, {"k", "y", "z"}), ElementsAre(Pair(1, Text("z"))));
}

TEST_F(TorchTableTest, WakesWhoWaitsForTheLastKey) {
  EXPECT_THAT(Do(1, TorchOp::kWait, {"a", "b", "a"}), IsEmpty());
  EXPECT_THAT(Do(2, TorchOp::kWait, {"b"}), IsEmpty());
  EXPECT_THAT(Do(3, TorchOp::kSet, {"b", ""}), ElementsAre(Pair(2, kStop)));
  EXPECT_THAT(Do(3, TorchOp::kAdd, {"a"}, 1), ElementsAre(Pair(1, kStop), Pair(3, Number(1))));
  EXPECT_THAT(Do(1, TorchOp::kWait, {"a", "b"}), ElementsAre(Pair(1, kStop)));
  EXPECT_THAT(Do(1, TorchOp::kWait, {"c"}), IsEmpty());
  EXPECT_THAT(Do(1, TorchOp::kCancelWait), ElementsAre(Pair(1, kCanceled)));
  EXPECT_THAT(Do(2, TorchOp::kWait, {"c"}), IsEmpty());
  table_.Forget(2);
  EXPECT_THAT(Do(3, TorchOp::kSet, {"c", "v"}), IsEmpty());
}

TEST_F(TorchTableTest, HasQueuesAndBarriers) {
  EXPECT_THAT(Do(1, TorchOp::kQueuePop, {"q"}), ElementsAre(Pair(1, Number(0))));
  Do(1, TorchOp::kWait, {"q"});
  Do(2, TorchOp::kWait, {"q"});
  EXPECT_THAT(Do(3, TorchOp::kQueuePush, {"q", "one"}), ElementsAre(Pair(1, kStop)))
      << "one value, one client";
  EXPECT_THAT(Do(3, TorchOp::kQueuePush, {"q", "two"}), ElementsAre(Pair(2, kStop)));
  EXPECT_THAT(Do(3, TorchOp::kQueueLen, {"q"}), ElementsAre(Pair(3, Number(2))));
  EXPECT_THAT(Do(1, TorchOp::kQueuePop, {"q"}), ElementsAre(Pair(1, Number(2) + Text("one"))));
  EXPECT_THAT(Do(2, TorchOp::kQueuePop, {"q"}), ElementsAre(Pair(2, Number(1) + Text("two"))));

  EXPECT_THAT(Do(1, TorchOp::kBarrier, {"end"}, 3), IsEmpty());
  EXPECT_THAT(Do(2, TorchOp::kBarrier, {"end"}, 3), IsEmpty());
  EXPECT_THAT(Do(3, TorchOp::kBarrier, {"end"}, 3),
              ElementsAre(Pair(1, kStop), Pair(2, kStop), Pair(3, kStop)));
  EXPECT_THAT(Do(3, TorchOp::kListKeys), ElementsAre(Pair(3, Number(1) + Text("end"))));
}

TEST_F(TorchTableTest, TellsWatchersOfOldTorch) {
  EXPECT_THAT(Do(1, TorchOp::kWatchKey, {"k"}), ElementsAre(Pair(1, Byte(3))));
  EXPECT_THAT(Do(2, TorchOp::kSet, {"k", "v"}),
              ElementsAre(Pair(1, Byte(1) + Text("k") + Text("") + Text("v"))));
  EXPECT_THAT(Do(2, TorchOp::kSet, {"k", "w"}),
              ElementsAre(Pair(1, Byte(0) + Text("k") + Text("v") + Text("w"))));
  table_.Forget(1);
  EXPECT_THAT(Do(2, TorchOp::kSet, {"k", "x"}), IsEmpty());
}

TEST_F(TorchTableTest, KeepsNoMoreThanItMayAndGivesAllBack) {
  const std::string large(3000, 'x');
  Do(1, TorchOp::kSet, {"k", large});
  EXPECT_EQ(error_, "");
  Do(1, TorchOp::kSet, {"l", large});
  EXPECT_THAT(error_, AllOf(HasSubstr("the store is full: it holds 3129 bytes of at most "),
                            HasSubstr(" for key 'l'")));
  Do(1, TorchOp::kGet, {"k"});
  EXPECT_THAT(error_, HasSubstr("more than 1024 bytes at once"));
  Do(1, TorchOp::kDeleteKey, {"k"});
  Do(1, TorchOp::kSet, {"k", "short"});
  Do(1, TorchOp::kSet, {"k", "longer than before"});
  Do(1, TorchOp::kAppend, {"k", "more"});
  Do(1, TorchOp::kDeleteKey, {"k"});
  Do(1, TorchOp::kQueuePush, {"q", large});
  EXPECT_EQ(error_, "");
  Do(1, TorchOp::kQueuePop, {"q"});
  Do(1, TorchOp::kWatchKey, {"w"});
  Do(2, TorchOp::kWait, {"a", "b"});
  Do(3, TorchOp::kBarrier, {"c"}, 2);
  Do(1, TorchOp::kDeleteKey, {"c"});
  for (const TorchTable::Client client : {1, 2, 3}) table_.Forget(client);
  EXPECT_EQ(table_.bytes(), 0u);
}

}  // namespace
}  // namespace dtrun::store
