#include <gmock/gmock.h>

#include "core/plugin/services.h"
#include "core/plugin/testing/fake_kv.h"
#include "dtrun/plugin/services.hpp"

namespace dtrun::plugin {
namespace {

using ::testing::HasSubstr;

// Uses the plugin authors' wrapper, so that both sides of the ABI are tested against each other.
class KvServiceTest : public ::testing::Test {
 protected:
  template <class Body>
  static dtrun_status CodeOf(Body&& body) {
    try {
      body();
    } catch (const sdk::Failure& failure) {
      return failure.code();
    }
    return DTRUN_OK;
  }
  testing::FakeKv fake_;
  sdk::Host host_{HostTable(Kind::kBackend, false)};
  sdk::Kv kv_{host_, &fake_};
};

TEST_F(KvServiceTest, CarriesBytesBothWays) {
  const std::string bytes("a\0b", 3);
  kv_.Set("key", bytes);
  kv_.Set("empty", "");
  EXPECT_EQ(kv_.Get("key", std::chrono::seconds(2)), bytes);
  EXPECT_EQ(fake_.last_timeout, std::chrono::seconds(2));
  EXPECT_EQ(kv_.TryGet("empty"), "");
  EXPECT_EQ(kv_.TryGet("absent"), std::nullopt);
}

TEST_F(KvServiceTest, GivesPartsOfASpaceWithRanksOfTheirOwn) {
  const dtrun_host* const host = host_.raw();
  const auto* const table = host_.Get<dtrun_kv_service>(DTRUN_KV_SERVICE);
  std::vector<int> reported;
  fake_.report = [&](int peer, std::string_view) { reported.push_back(peer); };
  const std::int32_t ranks[] = {4, 7};
  dtrun_kv* part = nullptr;
  ASSERT_EQ(table->open_part(host, &fake_, {"part/", 5}, ranks, 2, &part, nullptr), DTRUN_OK);
  sdk::Kv(host_, part).Set("key", "value");
  EXPECT_EQ(kv_.TryGet("part/key"), "value");
  const sdk::Health health(host_);
  health.ReportPeer(sdk::Kv(host_, part), 1, "gone");
  health.ReportPeer(sdk::Kv(host_, part), 2, "is no rank there");
  health.ReportPeer(kv_, 3, "gone");
  table->close_part(host, part);
  EXPECT_THAT(reported, ::testing::ElementsAre(7, -1, 3));

  const sdk::KvPart quiet(host_, &fake_, "quiet/");
  health.ReportPeer(sdk::Kv(host_, quiet.raw()), 0, "the caller reports it");
  EXPECT_EQ(reported.size(), 3u);
}

TEST_F(KvServiceTest, PassesCodesAndTextsOfTheStore) {
  try {
    kv_.Get("absent", std::chrono::seconds(1));
    FAIL();
  } catch (const sdk::Failure& failure) {
    EXPECT_EQ(failure.code(), DTRUN_TIMEOUT);
    EXPECT_STREQ(failure.what(), "key 'absent' did not appear");
  }
  kv_.Set("a", "1");
  kv_.WaitMany({"a"}, sdk::kNoLimit);
  EXPECT_EQ(fake_.last_timeout.count(), -1);
  EXPECT_EQ(CodeOf([&] { kv_.WaitMany({"a", "b"}, sdk::kNoLimit); }), DTRUN_TIMEOUT);
}

TEST_F(KvServiceTest, CountsSwapsAndErases) {
  EXPECT_EQ(kv_.Add("n", 2), 2);
  EXPECT_EQ(kv_.Add("n", -3), -1);
  EXPECT_TRUE(kv_.CompareSet("x", std::nullopt, ""));
  EXPECT_FALSE(kv_.CompareSet("x", std::nullopt, "2"));
  EXPECT_TRUE(kv_.CompareSet("x", "", "2"));  // an empty value is not absent
  EXPECT_FALSE(kv_.CompareSet("x", "1", "3"));
  EXPECT_TRUE(kv_.Erase("x"));
  EXPECT_FALSE(kv_.Erase("x"));
}

TEST_F(KvServiceTest, RefusesWhatIsTooLongOrEmpty) {
  EXPECT_EQ(CodeOf([&] { kv_.Set("", "v"); }), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([&] { kv_.Set(std::string(DTRUN_KV_MAX_KEY_BYTES, 'k'), "v"); }), DTRUN_OK);
  EXPECT_EQ(CodeOf([&] { kv_.Set(std::string(DTRUN_KV_MAX_KEY_BYTES + 1, 'k'), "v"); }),
            DTRUN_INVALID_ARGUMENT);
  const std::string big(DTRUN_KV_MAX_VALUE_BYTES + 1, 'v');
  EXPECT_EQ(CodeOf([&] { kv_.Set("k", big); }), DTRUN_INVALID_ARGUMENT);
}

TEST_F(KvServiceTest, TurnsExceptionsIntoAStatus) {
  EXPECT_EQ(CodeOf([&] { kv_.Set("throw", "v"); }), DTRUN_INTERNAL);
}

TEST_F(KvServiceTest, SaysSoWhenThereIsNoSpace) {
  const sdk::Kv none(host_, nullptr);
  EXPECT_EQ(CodeOf([&] { none.Set("k", "v"); }), DTRUN_FAILED_PRECONDITION);
}

}  // namespace
}  // namespace dtrun::plugin
