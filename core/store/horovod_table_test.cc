#include <gtest/gtest.h>

#include "core/store/horovod_server.h"

namespace dtrun::store {
namespace {

TEST(HorovodTable, KeepsValuesByScopeAndKey) {
  HorovodTable table({{"global", 2}});
  EXPECT_EQ(table.Take("GET", "/global/0", "").status, 404u);
  EXPECT_EQ(table.Take("PUT", "/global/0", std::string("a\0b", 3)).status, 200u);
  EXPECT_EQ(table.Take("GET", "/global/0", "").body, std::string("a\0b", 3));
  EXPECT_EQ(table.Take("GET", "/local_node0/0", "").status, 404u);
  EXPECT_EQ(table.Take("PUT", "/global/0", "").status, 200u);
  EXPECT_EQ(table.Take("GET", "/global/0", "").status, 200u) << "an empty value is one";
}

TEST(HorovodTable, EmptiesAScopeWhenAllItsMembersHaveFinished) {
  HorovodTable table({{"global", 2}});
  for (int round = 0; round < 2; ++round) {
    table.Take("PUT", "/global/0", "x");
    EXPECT_EQ(table.Take("DELETE", "/global/0", "").status, 200u);
    EXPECT_EQ(table.Take("GET", "/global/0", "").status, 200u);
    EXPECT_EQ(table.Take("DELETE", "/global/1", "").status, 200u);
    EXPECT_EQ(table.Take("GET", "/global/0", "").status, 404u);
  }
}

TEST(HorovodTable, DeletesKeysOfScopesThatPeersMakeUp) {
  HorovodTable table({{"global", 2}});
  table.Take("PUT", "/own/a", "x");
  table.Take("PUT", "/own/b", "y");
  table.Take("DELETE", "/own/a", "");
  EXPECT_EQ(table.Take("GET", "/own/a", "").status, 404u);
  EXPECT_EQ(table.Take("GET", "/own/b", "").body, "y");
}

TEST(HorovodTable, RefusesWhatItDoesNotKnow) {
  HorovodTable table({});
  for (const char* target : {"", "/", "global/0", "/global", "/global/", "//0", "*"}) {
    EXPECT_EQ(table.Take("GET", target, "").status, 400u) << target;
  }
  EXPECT_EQ(table.Take("POST", "/global/0", "x").status, 405u);
}

TEST(HorovodTable, IsFullAtItsLimitAndNotAfterwards) {
  HorovodTable table({});
  const std::string half(HorovodTable::kMostBytes / 2, 'x');
  EXPECT_EQ(table.Take("PUT", "/s/a", half).status, 200u);
  EXPECT_EQ(table.Take("PUT", "/s/b", half).status, 507u);
  table.Take("DELETE", "/s/a", "");
  EXPECT_EQ(table.Take("PUT", "/s/b", std::string(half, 1)).status, 200u);
}

}  // namespace
}  // namespace dtrun::store
