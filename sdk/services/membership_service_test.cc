#include <gmock/gmock.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sdk/conformance/host.h"
#include "sdk/conformance/kv.h"
#include "sdk/services/services.h"

namespace dtrun::services {
namespace {

using testing::HasSubstr;

// Counts the queries.
struct CountingKv final : dtrun_kv {
  void Set(const std::string& key, const std::string& value) override { kv.Set(key, value); }
  std::optional<std::string> TryGet(const std::string& key) override {
    ++asked;
    return kv.TryGet(key);
  }
  bool Erase(const std::string& key) override { return kv.Erase(key); }
  bool Update(const std::string& key, Change change, void* context) override {
    return kv.Update(key, change, context);
  }
  bool WaitFor(const std::vector<std::string>& keys, Deadline deadline) override {
    return kv.WaitFor(keys, deadline);
  }

  conformance::ThreadKv kv;
  std::atomic<int> asked{0};
};

dtrun_string Words(const char* text) { return {text, std::strlen(text)}; }

class MembershipServiceTest : public testing::Test {
 protected:
  MembershipServiceTest() { DTRUN_ERROR_INIT(error_); }

  dtrun_comm_params Params(int rank, int size) {
    dtrun_comm_params params;
    DTRUN_INIT(params);
    params.rank = rank;
    params.size = size;
    params.name = Words("world");
    params.kv = &space_;
    params.timeout_ns = 50'000'000;
    return params;
  }
  dtrun_membership* Open(int rank, int size) {
    const dtrun_comm_params params = Params(rank, size);
    dtrun_membership* out = nullptr;
    EXPECT_EQ(service_->open(host_, &params, &out, nullptr), DTRUN_OK);
    return out;
  }
  // The output of `said` or `left` as text.
  template <class Ask>
  std::string Take(Ask&& ask) {
    void* value = nullptr;
    std::uint64_t bytes = 0;
    if (ask(&value, &bytes) != DTRUN_OK) return "nothing";
    const std::string text(static_cast<char*>(value), bytes);
    conformance::MemoryService()->release(host_, value);
    return text;
  }

  const dtrun_membership_service* const service_ = Memberships();
  const dtrun_host* const host_ = conformance::Host();
  CountingKv space_;
  dtrun_error error_;
};

TEST_F(MembershipServiceTest, TellsWhatEachRankSaid) {
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([this, rank] {
      dtrun_membership* const membership = Open(rank, 3);
      const std::string own = "I am " + std::to_string(rank);
      EXPECT_EQ(service_->join(host_, membership, Words("place"), own.data(), own.size(), -1, nullptr),
                DTRUN_OK);
      EXPECT_EQ(Take([&](void** value, std::uint64_t* bytes) {
                  return service_->said(host_, membership, Words("place"), 2, value, bytes, nullptr);
                }),
                "I am 2");
      service_->close(host_, membership);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST_F(MembershipServiceTest, NamesWhoDoesNotJoin) {
  dtrun_membership* const membership = Open(0, 2);
  EXPECT_EQ(service_->join(host_, membership, Words("place"), nullptr, 0, 1'000'000, &error_), DTRUN_TIMEOUT);
  EXPECT_EQ(error_.peer, 1);
  EXPECT_THAT(error_.message, HasSubstr("rank 1 of 2 did not join 'world' within 1 ms"));
  service_->close(host_, membership);
}

TEST_F(MembershipServiceTest, KnowsWhoHasLeft) {
  dtrun_membership* const first = Open(0, 2);
  dtrun_membership* const second = Open(1, 2);
  const auto last_of_1 = [&](void** value, std::uint64_t* bytes) {
    return service_->left(host_, first, 1, value, bytes, &error_);
  };
  EXPECT_EQ(Take(last_of_1), "nothing");
  EXPECT_EQ(error_.code, DTRUN_NOT_FOUND);
  EXPECT_STREQ(error_.message, "rank 1 has not left 'world'");
  EXPECT_EQ(service_->leave(host_, second, "bye", 3, nullptr), DTRUN_OK);
  EXPECT_EQ(Take(last_of_1), "bye");
  service_->close(host_, first);
  service_->close(host_, second);
}

TEST_F(MembershipServiceTest, KeepsTheFirstFailureAndSaysItAsEachRankReportsIt) {
  dtrun_membership* const first = Open(0, 2);
  dtrun_membership* const second = Open(1, 2);
  std::int32_t rank = -1;
  dtrun_error failure;
  DTRUN_ERROR_INIT(failure);
  EXPECT_EQ(service_->first_failure(host_, first, &rank, &failure, &error_), DTRUN_NOT_FOUND);

  dtrun_error own;
  DTRUN_ERROR_INIT(own);
  dtrun_error_set(&own, DTRUN_FAILED_PRECONDITION, -1, "no device");
  EXPECT_EQ(service_->publish_failure(host_, second, &own, nullptr), DTRUN_OK);
  dtrun_error_set(&own, DTRUN_TIMEOUT, 1, "late");
  EXPECT_EQ(service_->publish_failure(host_, first, &own, nullptr), DTRUN_OK);

  space_.asked = 0;
  EXPECT_EQ(service_->first_failure(host_, first, &rank, &failure, &error_), DTRUN_OK);
  EXPECT_EQ(space_.asked, 1) << "questions to the store";
  EXPECT_EQ(rank, 1);
  EXPECT_EQ(failure.code, DTRUN_REMOTE_FAILURE);
  EXPECT_EQ(failure.peer, 1);
  EXPECT_STREQ(failure.message, "rank 1 gave up: no device");
  EXPECT_EQ(service_->first_failure(host_, second, &rank, &failure, &error_), DTRUN_OK);
  EXPECT_EQ(failure.code, DTRUN_FAILED_PRECONDITION);
  EXPECT_STREQ(failure.message, "no device");
  service_->close(host_, first);
  service_->close(host_, second);
}

TEST_F(MembershipServiceTest, SaysWhatIsWrongWithACall) {
  dtrun_membership* membership = nullptr;
  dtrun_comm_params params = Params(0, 2);
  EXPECT_EQ(service_->open(nullptr, &params, &membership, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(service_->open(host_, nullptr, &membership, &error_), DTRUN_INVALID_ARGUMENT);
  params.kv = nullptr;
  EXPECT_EQ(service_->open(host_, &params, &membership, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "dtrun_comm_params.kv is a null pointer");
  params = Params(2, 2);
  EXPECT_EQ(service_->open(host_, &params, &membership, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(membership, nullptr);

  membership = Open(0, 1);
  EXPECT_EQ(service_->join(host_, membership, Words(""), nullptr, 0, -1, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(service_->join(host_, membership, Words("place"), nullptr, 4, -1, &error_),
            DTRUN_INVALID_ARGUMENT);
  void* value = nullptr;
  std::uint64_t bytes = 0;
  EXPECT_EQ(service_->left(host_, membership, 1, &value, &bytes, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("the peer is 1 of 1 ranks"));
  EXPECT_EQ(service_->publish_failure(host_, membership, nullptr, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(service_->leave(host_, nullptr, nullptr, 0, &error_), DTRUN_INVALID_ARGUMENT);
  service_->close(host_, membership);
  service_->close(host_, nullptr);
}

}  // namespace
}  // namespace dtrun::services
