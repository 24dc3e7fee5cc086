#include <gtest/gtest.h>

#include "core/options/value.h"

namespace dtrun::options {
namespace {

using Texts = std::vector<std::string>;
using TextMap = std::map<std::string, std::string>;

Spec Typed(Type type) {
  Spec spec;
  spec.key = "a.key";
  spec.type = type;
  return spec;
}

TEST(Shown, DurationsAndSizesAreTexts) {
  EXPECT_EQ(Shown(Typed(Type::kDuration), std::int64_t{10'000'000'000}), Data(std::string("10s")));
  EXPECT_EQ(Shown(Typed(Type::kBytes), std::int64_t{65536}), Data(std::string("64KiB")));
  EXPECT_EQ(Shown(Typed(Type::kBytes), std::int64_t{100}), Data(std::string("100")));
  EXPECT_EQ(Shown(Typed(Type::kBytes), std::int64_t{-1}), Data(std::int64_t{-1})) << "as it was typed";
  EXPECT_EQ(Shown(Typed(Type::kInt), std::int64_t{65536}), Data(std::int64_t{65536}));
  EXPECT_EQ(Shown(Typed(Type::kBool), true), Data(true));
}

TEST(Shown, HasNoSecrets) {
  Spec secret = Typed(Type::kString);
  secret.secret = true;
  EXPECT_EQ(Shown(secret, std::string("hunter2")), Data(std::string("(secret)")));
  EXPECT_EQ(Shown(secret, {}), Data());
  EXPECT_EQ(Shown(Typed(Type::kMap), TextMap{{"A", "1"}, {"DB_PASSWORD", "hunter2"}}),
            Data(TextMap{{"A", "1"}, {"DB_PASSWORD", "(secret)"}}));
  EXPECT_EQ(Shown(Typed(Type::kList), Texts{"x", "--password", "hunter2"}),
            Data(Texts{"x", "--password", "(secret)"}));
  EXPECT_EQ(Shown(Typed(Type::kString), std::string("https://ann:hunter2@host/")),
            Data(std::string("https://ann:(secret)@host/")));
}

}  // namespace
}  // namespace dtrun::options
