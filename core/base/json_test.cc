#include "core/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun {
namespace {

TEST(Json, IsReadAndWrittenInTheOrderOfItsKeys) {
  const Json json = ParseJson(R"({"b": [1, 2.5], "a": "x"})");
  EXPECT_EQ(JsonLine(json), R"({"b":[1,2.5],"a":"x"})");
  EXPECT_EQ(JsonText(json["b"]), "[\n  1,\n  2.5\n]\n");
}

TEST(Json, IsDiscardedWhenItIsNone) {
  for (const char* text : {"", "{", "nul", "{} {}", "\xff"})
    EXPECT_TRUE(ParseJson(text).is_discarded()) << text;
}

TEST(Json, MayBeNestedAsDeepAsItLikes) {
  std::string text(1'000'000, '[');
  text.append(1'000'000, ']');
  EXPECT_THAT(JsonLine(ParseJson(text)), ::testing::StartsWith("[[["));
}

TEST(Json, HasTheVersionOfItsLayoutFirstInADocument) {
  EXPECT_EQ(JsonDocument(2, {{"b", 1}}), "{\n  \"schema\": 2,\n  \"b\": 1\n}\n");
}

TEST(Json, ReplacesBytesThatAreNoUtf8) { EXPECT_EQ(JsonLine(Json("a\xff")), "\"a\xEF\xBF\xBD\""); }

}  // namespace
}  // namespace dtrun
