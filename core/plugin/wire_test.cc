#include "core/plugin/wire.h"

#include <gmock/gmock.h>

namespace dtrun::plugin::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(Wire, CarriesADescription) {
  Description sent;
  sent.file.name = "demo";
  sent.version = "1";
  sent.abi = "0.1";
  options::Spec spec;
  spec.key = "backend.options.mode";
  spec.type = options::Type::kEnum;
  spec.default_text = "a";
  spec.choices = {"a", "b"};
  spec.secret = true;
  sent.options = {spec};
  const auto got = DecodeDescription(Encode(sent));
  ASSERT_TRUE(got.ok()) << got.error().text;
  EXPECT_EQ(got->file.name, "demo");
  ASSERT_EQ(got->options.size(), 1u);
  EXPECT_EQ(got->options[0].default_text, "a");
  EXPECT_EQ(got->options[0].min_text, std::nullopt);
  EXPECT_THAT(got->options[0].choices, ElementsAre("a", "b"));
  EXPECT_TRUE(got->options[0].secret);
}

TEST(Wire, CarriesRequestAndAnswerInOneLineEach) {
  const std::string request = Encode(LaunchRequest{"{\n}", 3, 2});
  EXPECT_EQ(request.find('\n'), std::string::npos);
  const auto got = DecodeLaunchRequest(request);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->options, "{\n}");
  EXPECT_EQ(got->local_ranks, 2);
  const auto info = DecodeLaunchInfo(Encode(LaunchInfo{{{"library", "x 1"}}, {{"A", "b\nc"}}}));
  ASSERT_TRUE(info.ok());
  EXPECT_THAT(info->facts, ElementsAre(Pair("library", "x 1")));
  EXPECT_THAT(info->env, ElementsAre(Pair("A", "b\nc")));
}

TEST(Wire, CarriesAnErrorInPlaceOfAnAnswer) {
  const auto got = DecodeLaunchInfo(Encode(Error{DTRUN_VENDOR, "no device", 4}));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, DTRUN_VENDOR);
  EXPECT_EQ(got.error().text, "no device");
  EXPECT_EQ(got.error().peer, 4);
}

TEST(Wire, ReplacesBytesThatAreNotUtf8) {
  const auto got = DecodeLaunchInfo(Encode(LaunchInfo{{{"library", "x\xff"}}, {}}));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->facts[0].second, "x\xef\xbf\xbd");
}

TEST(Wire, TakesGarbageForAnError) {
  for (const char* line : {"", "hello", "{}", "[]", "{\"launch_info\": 3}", "{\"error\": {}}"}) {
    const auto got = DecodeLaunchInfo(line);
    ASSERT_FALSE(got.ok()) << line;
    EXPECT_THAT(got.error().text, HasSubstr("invalid answer")) << line;
  }
}

}  // namespace
}  // namespace dtrun::plugin::wire
