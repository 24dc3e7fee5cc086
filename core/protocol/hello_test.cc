#include "core/protocol/hello.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/wire/coder.h"

namespace dtrun::protocol {
namespace {

using ::testing::HasSubstr;

std::string Payload(const std::string& frame) { return frame.substr(4); }

Hello AHello() {
  Hello hello;
  hello.job = "a";
  hello.host_index = 3;
  hello.host_name = "node3";
  hello.loss_limit = std::chrono::seconds(4);
  return hello;
}

TEST(Hello, CarriesEveryField) {
  Result<Hello> hello = DecodeHello(Payload(Encode(AHello())));
  ASSERT_TRUE(hello) << hello.error().text;
  EXPECT_EQ(hello->protocol, kProtocol);
  EXPECT_EQ(hello->version, DTRUN_VERSION);
  EXPECT_EQ(hello->job, "a");
  EXPECT_EQ(hello->host_index, 3);
  EXPECT_EQ(hello->host_name, "node3");
  EXPECT_EQ(hello->loss_limit, std::chrono::seconds(4));
}

TEST(Hello, OfAnotherProtocolStillTellsItsVersion) {
  wire::Writer writer;
  writer("kind", Kind::kHello);
  writer("magic", kMagic);
  writer("protocol", std::uint32_t{9});
  writer("version", std::string("7.1"));
  writer("rest", std::string("fields of the future"));
  Result<Hello> hello = DecodeHello(std::move(writer).Payload());
  ASSERT_TRUE(hello) << hello.error().text;
  EXPECT_EQ(hello->protocol, 9u);
  EXPECT_EQ(hello->version, "7.1");
}

TEST(Hello, RefusesEveryTruncation) {
  const std::string whole = Payload(Encode(AHello()));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(DecodeHello(std::string_view(whole).substr(0, size))) << size;
  }
}

TEST(Hello, RefusesWhatIsNone) {
  std::string payload = Payload(Encode(AHello()));
  payload[2] = 'x';  // part of the magic
  EXPECT_THAT(DecodeHello(payload).error().text, HasSubstr("does not begin as one"));
  EXPECT_FALSE(DecodeHello(Payload(Encode(Welcome{}))));
}

TEST(Hello, RefusesALossLimitThatNobodyCanKeep) {
  Hello hello = AHello();
  hello.loss_limit = Nanoseconds(0);
  EXPECT_THAT(DecodeHello(Payload(Encode(hello))).error().text, HasSubstr("loss_limit"));
}

TEST(Answer, IsAWelcomeOrTheWordsOfARefusal) {
  Result<Welcome> welcome = DecodeAnswer(Payload(Encode(Welcome{"node0", std::chrono::seconds(2)})));
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->host_name, "node0");
  EXPECT_EQ(welcome->loss_limit, std::chrono::seconds(2));

  Result<Welcome> final = DecodeAnswer(Payload(Encode(Refusal{true, "no"})));
  EXPECT_EQ(final.error().code, DTRUN_FAILED_PRECONDITION);
  EXPECT_EQ(final.error().text, "no");
  Result<Welcome> later = DecodeAnswer(Payload(Encode(Refusal{false, "not yet"})));
  EXPECT_EQ(later.error().code, DTRUN_BUSY);
}

TEST(Answer, CutsARefusalThatIsTooLong) {
  Result<Welcome> answer = DecodeAnswer(Payload(Encode(Refusal{true, std::string(10'000, 'x')})));
  EXPECT_EQ(answer.error().text.size(), kMaxRefusalBytes);
}

TEST(Compare, NamesBothVersions) {
  Hello hello = AHello();
  EXPECT_TRUE(Compare(hello, "a"));
  hello.version = "0.0.9";
  EXPECT_EQ(Compare(hello, "a").error().text,
            "the root runs dtrun " DTRUN_VERSION ", this host 0.0.9; install the same version on both");
  hello.version = DTRUN_VERSION;
  hello.protocol = 9;
  EXPECT_THAT(Compare(hello, "a").error().text, HasSubstr("protocol 1, this host's 9"));
}

TEST(Compare, NamesBothJobs) {
  EXPECT_THAT(Compare(AHello(), "b").error().text,
              HasSubstr("this root is of job 'b', this host belongs to job 'a'"));
}

TEST(Hello, NamesHaveNoControlCharacters) {
  Hello hello;
  hello.host_name = "node\x1b[2J";
  EXPECT_NE(DecodeHello(std::string_view(Encode(hello)).substr(4)).error().text.find("control characters"),
            std::string::npos);
}

}  // namespace
}  // namespace dtrun::protocol
