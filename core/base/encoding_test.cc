#include "core/base/encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun {
namespace {

using ::testing::HasSubstr;
using Map = std::map<std::string, std::string>;

std::string Frame(std::string_view payload) {
  Encoder encoder;
  for (const char byte : payload) encoder.Number(byte);
  return std::move(encoder).Frame();
}

TEST(Encoding, CarriesEveryKindOfField) {
  Encoder encoder;
  encoder.Number(std::int64_t{-5});
  encoder.Flag(true);
  encoder.Text(std::string_view("a\0b", 3), 3);
  encoder.Texts({"x", ""}, 2, 1);
  encoder.Pairs({{"k", "v"}, {"l", ""}}, 2, 1);
  const std::string bytes = std::move(encoder).Payload();

  Decoder decoder(bytes);
  std::int64_t number = 0;
  bool flag = false;
  std::string text;
  std::vector<std::string> texts;
  Map pairs;
  decoder.Number(number);
  decoder.Flag(flag);
  decoder.Text(text, 3);
  decoder.Texts(texts, 2, 1);
  decoder.Pairs(pairs, 2, 1);
  EXPECT_TRUE(decoder.Finish("test"));
  EXPECT_EQ(number, -5);
  EXPECT_TRUE(flag);
  EXPECT_EQ(text, std::string("a\0b", 3));
  EXPECT_EQ(texts, (std::vector<std::string>{"x", ""}));
  EXPECT_EQ(pairs, (Map{{"k", "v"}, {"l", ""}}));
}

TEST(Encoding, RefusesEveryTruncationOfAMap) {
  Encoder encoder;
  encoder.Pairs({{"key", "value"}, {"more", ""}}, 2, 5);
  const std::string bytes = std::move(encoder).Payload();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Map pairs;
    Decoder decoder(std::string_view(bytes).substr(0, size));
    decoder.Pairs(pairs, 2, 5);
    EXPECT_FALSE(decoder.Finish("test")) << size;
  }
}

TEST(Encoding, RefusesAMapWithAKeyTwice) {
  Encoder encoder;
  encoder.Number(std::uint32_t{2});
  for (const char* text : {"a", "1", "a", "2"}) encoder.Text(text, 1);
  const std::string bytes = std::move(encoder).Payload();
  Map pairs;
  Decoder decoder(bytes);
  decoder.Pairs(pairs, 2, 1);
  EXPECT_THAT(decoder.Finish("test").error().text, HasSubstr("malformed test: the keys of a map"));
}

TEST(Encoding, RefusesListsBeyondTheirLimits) {
  Encoder encoder;
  encoder.Texts({"x", "y"}, 2, 1);
  const std::string bytes = std::move(encoder).Payload();
  std::vector<std::string> texts;
  Decoder short_list(bytes);
  short_list.Texts(texts, 1, 1);
  EXPECT_FALSE(short_list.Finish("test"));
  Decoder short_texts(bytes);
  short_texts.Texts(texts, 2, 0);
  EXPECT_FALSE(short_texts.Finish("test"));
}

TEST(FrameReader, FindsFramesInBytesThatArriveOneByOne) {
  FrameReader frames(1024);
  std::vector<std::string> found;
  for (const char byte : Frame("first") + Frame("2")) {
    frames.Append({&byte, 1});
    Result<std::optional<std::string_view>> next = frames.Next();
    ASSERT_TRUE(next.ok());
    if (next->has_value()) found.emplace_back(**next);
  }
  EXPECT_EQ(found, (std::vector<std::string>{"first", "2"}));
}

TEST(FrameReader, FindsSeveralFramesInOneAppend) {
  FrameReader frames(1024);
  frames.Append(Frame("1") + Frame("2"));
  EXPECT_EQ(frames.Next()->value(), "1");
  EXPECT_EQ(frames.Next()->value(), "2");
  EXPECT_FALSE(frames.Next()->has_value());
}

TEST(FrameReader, RefusesAFrameBeyondTheLimitBeforeItsBytesArrive) {
  FrameReader frames(16);
  frames.Append(std::string("\x11\0\0\0", 4));
  EXPECT_FALSE(frames.Next().ok());
  EXPECT_FALSE(frames.Next().ok());
}

TEST(FrameReader, RefusesAnEmptyFrame) {
  FrameReader frames(16);
  frames.Append(std::string(4, '\0'));
  EXPECT_FALSE(frames.Next().ok());
}

}  // namespace
}  // namespace dtrun
