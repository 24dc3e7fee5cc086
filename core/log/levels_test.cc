#include <gmock/gmock.h>

#include "core/log/log.h"

namespace dtrun::log {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Levels, OfAllRoomsAndOfSome) {
  const Result<Levels> levels = ParseLevels(" info , network=debug,gloo=off");
  ASSERT_TRUE(levels.ok());
  EXPECT_EQ(levels->Of("job"), Level::kInfo);
  EXPECT_EQ(levels->Of("network"), Level::kDebug);
  EXPECT_EQ(levels->Of("gloo"), Level::kOff);
  EXPECT_EQ(levels->Lowest(), Level::kDebug);
  EXPECT_EQ(ToText(*levels), "info,gloo=off,network=debug");
  EXPECT_EQ(*ParseLevels(ToText(*levels)), *levels);
}

TEST(Levels, WarningsUnlessAskedForMore) {
  EXPECT_EQ(*ParseLevels(""), Levels{});
  EXPECT_EQ(ParseLevels("node=debug")->others, Level::kWarn);
}

TEST(Levels, AnyCase) { EXPECT_EQ(ToText(*ParseLevels("INFO,node=Warning")), "info,node=warn"); }

TEST(Levels, TheLastOfARoomCounts) { EXPECT_EQ(ParseLevels("a=info,a=error")->Of("a"), Level::kError); }

TEST(Levels, WrongPartsAreNamed) {
  for (const auto* const text : {"loud", "info,network=loud", "=debug", "info,,debug", "trace", "a=b=info"}) {
    const Result<Levels> levels = ParseLevels(text);
    ASSERT_FALSE(levels.ok()) << text;
    EXPECT_THAT(levels.error().text, HasSubstr("is no level: expected debug, info, warn, error or off"))
        << text;
  }
  EXPECT_THAT(ParseLevels("info,network=loud").error().text,
              HasSubstr("'network=loud' in 'info,network=loud'"));
}

TEST(Levels, UnknownRoomsAreToldWithTheNearest) {
  const Levels levels = *ParseLevels("membershp=debug,gloo=info,job=info,quux=info");
  EXPECT_THAT(UnknownRooms(levels, {"gloo"}), ElementsAre(HasSubstr("'membershp'; did you mean membership?"),
                                                          HasSubstr("'quux'; there are comm, job,")));
  EXPECT_THAT(UnknownRooms(Levels{}, {}), IsEmpty());
}

}  // namespace
}  // namespace dtrun::log
