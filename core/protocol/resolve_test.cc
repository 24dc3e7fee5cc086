#include "core/protocol/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/protocol/testing.h"

namespace dtrun::protocol {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::RunUntil;

struct Asked {
  explicit Asked(const std::string& name) {
    handle = ResolveBySystem(loop, name, [this](Addresses found) { answer = std::move(found); });
  }
  asio::io_context loop;
  std::shared_ptr<void> handle;
  std::optional<Addresses> answer;
};

TEST(ResolveBySystem, FindsLocalhost) {
  Asked asked("localhost");
  EXPECT_FALSE(asked.answer);  // never from within
  ASSERT_TRUE(RunUntil(asked.loop, [&] { return asked.answer.has_value(); }));
  ASSERT_TRUE(*asked.answer) << asked.answer->error().text;
  std::vector<std::string> texts;
  for (const auto& address : **asked.answer) texts.push_back(address.to_string());
  EXPECT_THAT(texts, Contains(::testing::AnyOf("127.0.0.1", "::1")));
}

TEST(ResolveBySystem, TakesANumericAddressAsItIs) {
  Asked asked("::1");
  EXPECT_FALSE(asked.answer);
  ASSERT_TRUE(RunUntil(asked.loop, [&] { return asked.answer.has_value(); }));
  ASSERT_TRUE(*asked.answer);
  EXPECT_EQ((*asked.answer)->front(), asio::ip::make_address("::1"));
}

TEST(ResolveBySystem, SaysWhyANameDoesNotResolve) {
  Asked asked("nowhere.invalid");
  ASSERT_TRUE(RunUntil(asked.loop, [&] { return asked.answer.has_value(); }));
  ASSERT_FALSE(*asked.answer);
  EXPECT_THAT(asked.answer->error().text, HasSubstr("'nowhere.invalid' does not resolve: "));
}

TEST(ResolveBySystem, NeverCallsBackOnceItsHandleIsGone) {
  Asked asked("nowhere.invalid");
  asked.handle.reset();
  Asked numeric("127.0.0.1");
  numeric.handle.reset();
  // Nothing keeps either loop running, including the first one's thread.
  asked.loop.run();
  numeric.loop.run();
  EXPECT_FALSE(asked.answer || numeric.answer);
}

}  // namespace
}  // namespace dtrun::protocol
