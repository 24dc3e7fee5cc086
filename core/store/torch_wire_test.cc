#include "core/store/torch_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/store/testing/torch_bytes.h"

namespace dtrun::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;  // NOLINT: of this folder

TEST(TorchReader, ReadsWhatTorch113Sends) {
  // Captured from torch 1.13: add("init/", 1), compare_set("/k", "a", "b").
  TorchReader reader;
  reader.Append(Byte(3) + Text("init/") + Number(1) + Byte(1) + Text("/k") + Text("a") + Text("b"));
  auto add = reader.Next();
  ASSERT_TRUE(add && *add);
  EXPECT_EQ((*add)->op, TorchOp::kAdd);
  EXPECT_THAT((*add)->fields, ElementsAre("init/"));
  EXPECT_EQ((*add)->number, 1);
  auto swap = reader.Next();
  ASSERT_TRUE(swap && *swap);
  EXPECT_EQ((*swap)->op, TorchOp::kCompareSet);
  EXPECT_THAT((*swap)->fields, ElementsAre("/k", "a", "b"));
  EXPECT_EQ(reader.Next()->has_value(), false);
}

TEST(TorchReader, ReadsWhatTorch2SendsByteByByte) {
  const std::string bytes = Validate() + Byte(13) + Number32(77) + Byte(1) + Text("/k") + Text("v") +
                            Byte(6) + Count(2) + Text("a") + Text("b") + Byte(18) + Text("end") + Number(4);
  TorchReader reader;
  std::vector<TorchRequest> seen;
  for (const char byte : bytes) {
    reader.Append({&byte, 1});
    auto next = reader.Next();
    ASSERT_TRUE(next) << next.error().text;
    if (*next) seen.push_back(**std::move(next));
  }
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].op, TorchOp::kPing);
  EXPECT_EQ(seen[0].number, 77);
  EXPECT_EQ(seen[1].op, TorchOp::kSet);
  EXPECT_THAT(seen[1].fields, ElementsAre("/k", "v"));
  EXPECT_EQ(seen[2].op, TorchOp::kWait);
  EXPECT_THAT(seen[2].fields, ElementsAre("a", "b"));
  EXPECT_EQ(seen[3].op, TorchOp::kBarrier);
  EXPECT_EQ(seen[3].number, 4);
  EXPECT_EQ(reader.buffered(), 0u);
}

TEST(TorchReader, TellsBothProtocolsByTheirFirstBytes) {
  TorchReader plain;
  plain.Append(Byte(0) + Text("key") + Text("value"));  // SET is 0 there, as VALIDATE is later
  EXPECT_EQ((*plain.Next())->op, TorchOp::kSet);
  TorchReader late;
  late.Append(Validate().substr(0, 3));
  EXPECT_FALSE(late.Next()->has_value());
  late.Append(Validate().substr(3) + Byte(7));
  EXPECT_EQ((*late.Next())->op, TorchOp::kNumKeys);
}

TEST(TorchReader, RefusesWhatIsTooLarge) {
  const auto error_of = [](const std::string& bytes) {
    TorchReader reader;
    reader.Append(Validate() + bytes);
    const auto next = reader.Next();
    return next ? std::string("none") : next.error().text;
  };
  EXPECT_THAT(error_of(Byte(200)), HasSubstr("request 200"));
  EXPECT_THAT(error_of(Validate()), HasSubstr("request 0"));
  EXPECT_THAT(error_of(Byte(3) + Count(kMaxTorchKeyBytes + 1)), HasSubstr("a key of 8193 bytes"));
  EXPECT_THAT(error_of(Byte(1) + Text("k") + Count(~std::uint64_t{0})), HasSubstr("a value of"));
  EXPECT_THAT(error_of(Byte(6) + Count(kMaxTorchKeys + 1)), HasSubstr("keys at once"));
  std::string many = Byte(11) + Count(16);
  const std::string value(kMaxTorchValueBytes, 'x');
  for (int i = 0; i < 9; ++i) many += Text("k") + Text(value);
  EXPECT_THAT(error_of(many), HasSubstr("a request of more than"));
}

}  // namespace
}  // namespace dtrun::store
