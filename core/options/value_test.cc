#include "core/options/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::options {
namespace {

using ::testing::HasSubstr;
using Texts = std::vector<std::string>;
using TextMap = std::map<std::string, std::string>;

Spec A(Type type) {
  Spec spec;
  spec.key = "x";
  spec.type = type;
  spec.reader = "demo backend";
  return spec;
}

Spec ARange(Type type, const char* min, const char* max) {
  Spec spec = A(type);
  spec.min_text = min;
  spec.max_text = max;
  return spec;
}

Data Read(const Spec& spec, std::string_view text) {
  const Result<Data> data = ParseText(spec, text, "/conf");
  EXPECT_TRUE(data.ok()) << text << ": " << (data.ok() ? "" : data.error().text);
  return data.ok() ? *data : Data();
}

std::string Refusal(const Spec& spec, std::string_view text) {
  const Result<Data> data = ParseText(spec, text, "/conf");
  return data.ok() ? "accepted" : data.error().text;
}

TEST(ParseText, ReadsEveryType) {
  EXPECT_EQ(Read(A(Type::kBool), "true"), Data(true));
  EXPECT_EQ(Read(A(Type::kInt), "-7"), Data(std::int64_t{-7}));
  EXPECT_EQ(Read(A(Type::kUint), "9223372036854775807"), Data(INT64_MAX));
  EXPECT_EQ(Read(A(Type::kFloat), "2.5e3"), Data(2500.0));
  EXPECT_EQ(Read(A(Type::kString), "a b"), Data(std::string("a b")));
  EXPECT_EQ(Read(A(Type::kBytes), "64K"), Data(std::int64_t{65536}));
  EXPECT_EQ(Read(A(Type::kDuration), "1.5s"), Data(std::int64_t{1'500'000'000}));
  EXPECT_EQ(Read(A(Type::kPath), "../a"), Data(std::string("/a")));
  EXPECT_EQ(Read(A(Type::kPath), "/b/"), Data(std::string("/b/")));
  EXPECT_EQ(Read(A(Type::kList), "a, b,,c"), Data(Texts{"a", "b", "", "c"}));
  EXPECT_EQ(Read(A(Type::kList), " a\t,\nb "), Data(Texts{"a", "b"}));
  EXPECT_EQ(Read(A(Type::kList), ""), Data(Texts{}));
  EXPECT_EQ(Read(A(Type::kPathList), "p,/q"), Data(Texts{"/conf/p", "/q"}));
  EXPECT_EQ(Read(A(Type::kMap), "A=1, B=x=y"), Data(TextMap{{"A", "1"}, {"B", "x=y"}}));
  EXPECT_EQ(Read(A(Type::kNames), "a"), Data(std::string("a")));
  EXPECT_EQ(Read(A(Type::kNames), "a, b"), Data(Texts{"a", "b"}));
}

TEST(ParseText, SaysWhatWasExpectedAndFound) {
  EXPECT_EQ(Refusal(A(Type::kBool), "yes"), "expected true or false; found \"yes\", did you mean true?");
  EXPECT_EQ(Refusal(A(Type::kBool), "maybe"), "expected true or false; found \"maybe\"");
  EXPECT_EQ(Refusal(A(Type::kInt), "1x"), "expected an integer; found \"1x\"");
  EXPECT_EQ(Refusal(A(Type::kInt), "9223372036854775808"),
            "expected an integer; found \"9223372036854775808\"");
  EXPECT_EQ(Refusal(A(Type::kUint), "-1"), "expected an integer of at least 0; found -1");
  EXPECT_EQ(Refusal(A(Type::kFloat), "nan"), "expected a number; found nan");
  EXPECT_EQ(Refusal(A(Type::kDuration), "60"),
            "expected a duration such as \"60s\"; found \"60\", did you mean \"60s\"?");
  EXPECT_EQ(Refusal(ARange(Type::kDuration, "1s", "1h"), "0"),
            "expected a duration such as \"60s\", from 1s to 1h; found \"0\"")
      << "0s is refused, too";
  EXPECT_EQ(Refusal(ARange(Type::kBytes, "16MiB", "1TiB"), "8MiB"),
            "expected a size such as \"16MiB\", from 16MiB to 1TiB; found \"8MiB\"");
  EXPECT_EQ(Refusal(A(Type::kBytes), "4 GBs"),
            "expected a size such as \"8MiB\"; found \"4 GBs\", did you mean \"4GB\"?");
  EXPECT_EQ(
      Refusal(A(Type::kDuration), "99999999999h"),
      "expected a duration such as \"60s\"; found \"99999999999h\"; the longest is 10 years, \"87600h\"");
  EXPECT_EQ(Refusal(A(Type::kBytes), "8388608TB"),
            "expected a size such as \"8MiB\"; found \"8388608TB\"; it must be less than \"8388608TiB\"");
  EXPECT_THAT(Refusal(A(Type::kDuration), "3 secs"), ::testing::HasSubstr("did you mean \"3s\"?"));
  EXPECT_EQ(Refusal(A(Type::kBytes), "x"), "expected a size such as \"8MiB\"; found \"x\"");
  EXPECT_EQ(Refusal(A(Type::kPath), ""), "expected a path; found \"\"");
  EXPECT_EQ(Refusal(A(Type::kMap), "A"), "expected a table of strings; found \"A\"");
}

TEST(ParseText, ChecksBoundsInclusively) {
  const Spec grace = ARange(Type::kDuration, "0s", "1h");
  EXPECT_EQ(Read(grace, "1h"), Data(std::int64_t{3'600'000'000'000}));
  EXPECT_EQ(Refusal(grace, "61m"), "expected a duration such as \"60s\", from 0s to 1h; found \"61m\"");
  const Spec ratio = ARange(Type::kFloat, "0", "1");
  EXPECT_EQ(Read(ratio, "1"), Data(1.0));
  EXPECT_EQ(Refusal(ratio, "1.5"), "expected a number from 0 to 1; found 1.5");
}

TEST(ParseText, SuggestsTheNearestChoice) {
  Spec spec = A(Type::kEnum);
  spec.choices = {"auto", "rank", "none"};
  EXPECT_EQ(Read(spec, "rank"), Data(std::string("rank")));
  EXPECT_EQ(Refusal(spec, "rnk"),
            "expected one of \"auto\", \"rank\", \"none\"; found \"rnk\", did you mean \"rank\"?");
  EXPECT_EQ(Refusal(spec, "yellow"), "expected one of \"auto\", \"rank\", \"none\"; found \"yellow\"");
}

TEST(ParseText, ReadsACountAsNumberOrWord) {
  Spec spec = ARange(Type::kCount, "1", "4096");
  spec.choices = {"cpu", "gpu"};
  EXPECT_EQ(Read(spec, "12"), Data(std::int64_t{12}));
  EXPECT_EQ(Read(spec, "gpu"), Data(std::string("gpu")));
  EXPECT_EQ(Refusal(spec, "0"), "expected a number from 1 to 4096 or one of \"cpu\", \"gpu\"; found 0");
  EXPECT_THAT(Refusal(spec, "gpus"), HasSubstr("did you mean \"gpu\"?"));
}

TEST(ParseText, RefusesTextThatCannotBeAnArgument) {
  EXPECT_EQ(Refusal(A(Type::kString), "a\xff"), "expected UTF-8; found byte 0xff at offset 1");
  EXPECT_EQ(Refusal(A(Type::kString), std::string_view("a\0b", 3)),
            "expected text without a NUL character; found one");
  EXPECT_EQ(Refusal(A(Type::kList), "ok,\xc3"), "expected UTF-8; found byte 0xc3 at offset 0");
  EXPECT_FALSE(CheckBounds(A(Type::kMap), TextMap{{"", "x"}}).ok());
  EXPECT_FALSE(CheckBounds(A(Type::kMap), TextMap{{"A=B", "x"}}).ok());
}

TEST(ParseText, NeverShowsASecret) {
  Spec spec = ARange(Type::kInt, "1", "9");
  spec.secret = true;
  EXPECT_EQ(Refusal(spec, "12345"), "expected an integer from 1 to 9; found (secret)");
  spec = A(Type::kEnum);
  spec.choices = {"hunter1"};
  spec.secret = true;
  EXPECT_EQ(Refusal(spec, "hunter2"), "expected one of \"hunter1\"; found (secret)");
}

TEST(ParseText, BlamesThePluginForABoundItCannotRead) {
  EXPECT_THAT(Refusal(ARange(Type::kInt, "one", "9"), "3"), HasSubstr("defect of the demo backend"));
}

TEST(Format, WritesWhatTomlWouldRead) {
  EXPECT_EQ(Format(A(Type::kBool), Data(false)), "false");
  EXPECT_EQ(Format(A(Type::kInt), Data(std::int64_t{4})), "4");
  EXPECT_EQ(Format(A(Type::kFloat), Data(0.5)), "0.5");
  EXPECT_EQ(Format(A(Type::kString), Data(std::string("gloo"))), "\"gloo\"");
  EXPECT_EQ(Format(A(Type::kDuration), Data(std::int64_t{10'000'000'000})), "\"10s\"");
  EXPECT_EQ(Format(A(Type::kBytes), Data(std::int64_t{65536})), "\"64KiB\"");
  EXPECT_EQ(Format(A(Type::kBytes), Data(std::int64_t{100})), "100");
  EXPECT_EQ(Format(A(Type::kList), Data(Texts{"a", "b"})), "[\"a\", \"b\"]");
  EXPECT_EQ(Format(A(Type::kMap), Data(TextMap{{"A", "1"}, {"B", "2"}})), "{ A = \"1\", B = \"2\" }");
  EXPECT_EQ(Format(A(Type::kInt), Data()), "unset");
  Spec secret = A(Type::kString);
  secret.secret = true;
  EXPECT_EQ(Format(secret, Data(std::string("hunter2"))), "(secret)");
}

}  // namespace
}  // namespace dtrun::options
