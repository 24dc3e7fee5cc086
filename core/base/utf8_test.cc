#include <gmock/gmock.h>

#include "core/base/text.h"

namespace dtrun {
namespace {

TEST(Utf8, ReadsCharactersOfEverySize) {
  for (const auto& [text, size, code] :
       {std::tuple("a!", 1u, U'a'), {"é!", 2u, U'é'}, {"€!", 3u, U'€'}, {"😀!", 4u, U'😀'}}) {
    EXPECT_EQ(FirstCharacter(text).size, size) << text;
    EXPECT_EQ(FirstCharacter(text).code, code) << text;
    EXPECT_EQ(CharacterSize(text[0]), size) << text;
  }
}

TEST(Utf8, TakesNothingThatIsNotValid) {
  for (const std::string_view text : {
           "\x80",                                                      // stray continuation byte
           "\xc3", "\xe2\x82",                                          // truncated
           "\xc3(",                                                     // missing continuation
           "\xc0\xaf", "\xc1\x81", "\xe0\x80\xaf", "\xf0\x80\x80\xaf",  // overlong
           "\xed\xa0\x80",                                              // a surrogate
           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"               // beyond U+10FFFF
       })
    EXPECT_EQ(FirstCharacter(text).size, 0u) << text;
}

TEST(Utf8, CutsNoCharacter) {
  EXPECT_EQ(PrefixWithin("aé", 3), "aé");
  EXPECT_EQ(PrefixWithin("aé", 2), "a");
  EXPECT_EQ(PrefixWithin("é", 1), "");
  EXPECT_EQ(Shortened("aé", 3), "aé");
  EXPECT_EQ(Shortened("aéb", 2), "a...");
}

}  // namespace
}  // namespace dtrun
