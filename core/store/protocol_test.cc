#include "core/store/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error_id.h"

namespace dtrun::store {
namespace {

using ::testing::HasSubstr;

std::string Payload(const std::string& frame) { return frame.substr(4); }

template <class T>
T RoundTrip(T body) {
  Result<Request> request = DecodeRequest(Payload(Encode(Request{7, std::move(body)})));
  EXPECT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(request->id, 7u);
  return std::get<T>(request->body);
}

TEST(Protocol, CarriesEveryFieldOfEveryRequest) {
  const Hello hello = RoundTrip(Hello{3, "key", 9, 5, true});
  EXPECT_EQ(hello.version, 3u);
  EXPECT_EQ(hello.job_key, "key");
  EXPECT_EQ(hello.generation, 9u);
  EXPECT_EQ(hello.rank, 5);
  EXPECT_TRUE(hello.main);
  const Set set = RoundTrip(Set{"k", std::string("v\0w", 3)});
  EXPECT_EQ(set.key, "k");
  EXPECT_EQ(set.value, std::string("v\0w", 3));
  const Get get = RoundTrip(Get{"k", -1});
  EXPECT_EQ(get.key, "k");
  EXPECT_EQ(get.timeout_ns, -1);
  EXPECT_EQ(RoundTrip(TryGet{"t"}).key, "t");
  const Metrics metrics =
      RoundTrip(Metrics{{{"loss", 0.25, 7, std::chrono::nanoseconds(5)}}, std::chrono::nanoseconds(9), 4096});
  ASSERT_EQ(metrics.values.size(), 1u);
  EXPECT_EQ(metrics.values[0].name, "loss");
  EXPECT_EQ(metrics.values[0].value, 0.25);
  EXPECT_EQ(metrics.values[0].step, 7);
  EXPECT_EQ(metrics.values[0].age.count(), 5);
  EXPECT_EQ(metrics.processor.count(), 9);
  EXPECT_EQ(metrics.memory, 4096);
  const Add add = RoundTrip(Add{"n", -4});
  EXPECT_EQ(add.key, "n");
  EXPECT_EQ(add.amount, -4);
  const CompareSet swap = RoundTrip(CompareSet{"k", true, "old", "new"});
  EXPECT_TRUE(swap.has_expected);
  EXPECT_EQ(swap.expected, "old");
  EXPECT_EQ(swap.desired, "new");
  EXPECT_EQ(RoundTrip(Erase{"e"}).key, "e");
  const WaitMany wait = RoundTrip(WaitMany{{"a", "b"}, 12});
  EXPECT_EQ(wait.keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(wait.timeout_ns, 12);
  RoundTrip(Goodbye{});
  const Report report = RoundTrip(Report{
      {DTRUN_TIMEOUT, "it went away", 2, ErrorId::kTimeout, {2, 5}, {{"call", "recv from"}}}, {0, 2, 5}});
  EXPECT_EQ(report.failure.code, DTRUN_TIMEOUT);
  EXPECT_EQ(report.failure.peer, 2);
  EXPECT_EQ(report.failure.text, "it went away");
  EXPECT_EQ(report.failure.id, ErrorId::kTimeout);
  EXPECT_EQ(report.failure.ranks, (std::vector<int>{2, 5}));
  EXPECT_EQ(report.failure.Arg("call"), "recv from");
  EXPECT_EQ(report.members, (std::vector<std::int32_t>{0, 2, 5}));
  const Fail fail = RoundTrip(Fail{"comm/", "rank 1 cannot join"});
  EXPECT_EQ(fail.prefix, "comm/");
  EXPECT_EQ(fail.text, "rank 1 cannot join");
}

TEST(Protocol, CarriesEveryFieldOfAReply) {
  Result<Reply> reply = DecodeReply(Payload(Encode(Reply{4, DTRUN_TIMEOUT, -8, "late"})));
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->id, 4u);
  EXPECT_EQ(reply->status, DTRUN_TIMEOUT);
  EXPECT_EQ(reply->number, -8);
  EXPECT_EQ(reply->value, "late");
}

TEST(Protocol, RefusesEveryTruncationOfARequest) {
  const std::string whole = Payload(Encode(Request{1, CompareSet{"key", true, "old", "new"}}));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(DecodeRequest(std::string_view(whole).substr(0, size)).ok()) << size;
  }
}

TEST(Protocol, RefusesBytesBehindTheLastField) {
  Result<Request> request = DecodeRequest(Payload(Encode(Request{1, TryGet{"key"}})) + "x");
  ASSERT_FALSE(request.ok());
  EXPECT_THAT(request.error().text, HasSubstr("bytes follow"));
}

TEST(Protocol, RefusesMetricsThatNoLibdtrunSends) {
  const auto decoded = [](const Metric& metric) {
    return DecodeRequest(Payload(Encode(Request{7, Metrics{{metric}, {}, 0}}))).ok();
  };
  EXPECT_TRUE(decoded({"loss", 1, {}, kMaxMetricAge}));
  EXPECT_FALSE(decoded({"loss", 1, {}, kMaxMetricAge + std::chrono::nanoseconds(1)}));
  EXPECT_FALSE(decoded({"loss", 1, {}, std::chrono::nanoseconds(-1)}));
  EXPECT_FALSE(decoded({"lo\nss", 1, {}, {}}));
  EXPECT_FALSE(decoded({"dtrun_job_ranks", 1, {}, {}}));
}

TEST(Protocol, RefusesAnUnknownOp) {
  std::string payload = Payload(Encode(Request{1, Goodbye{}}));
  payload[0] = 63;
  ASSERT_FALSE(DecodeRequest(payload).ok());
  EXPECT_THAT(DecodeRequest(payload).error().text, HasSubstr("unknown op 63"));
}

TEST(Protocol, RefusesAKeyBeyondTheLimit) {
  EXPECT_TRUE(DecodeRequest(Payload(Encode(Request{1, TryGet{std::string(kMaxKeyBytes, 'k')}}))).ok());
  EXPECT_FALSE(DecodeRequest(Payload(Encode(Request{1, TryGet{std::string(kMaxKeyBytes + 1, 'k')}}))).ok());
}

TEST(Protocol, RefusesARequestWhereAReplyIsDue) {
  EXPECT_FALSE(DecodeReply(Payload(Encode(Request{1, Goodbye{}}))).ok());
}

}  // namespace
}  // namespace dtrun::store
