#include "core/wire/coder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error_id.h"

namespace dtrun::wire {
namespace {

using ::testing::HasSubstr;
using Map = std::map<std::string, std::string>;

enum class Colour : std::uint8_t { kRed, kGreen };

struct Inner {
  std::int64_t number = 0;
  void Fields(auto& io) { io("number", number, Between{-5, 5}); }
};

struct ReadError {
  Error error;
  void Fields(auto& io) { io("error", error); }
};

struct Message {
  Inner inner;
  bool flag = false;
  std::string text;
  std::vector<std::string> texts;
  Map map;
  std::optional<int> maybe;
  std::vector<std::pair<int, int>> pairs;
  Colour colour = Colour::kRed;
  std::chrono::nanoseconds time{};
  ProcessVariables variables;
  std::variant<Inner, bool> any;

  void Fields(auto& io) {
    io("inner", inner);
    io("flag", flag);
    io("text", text, Most{3}, kPrintable);
    io("texts", texts, Most{2}, Most{1});
    io("map", map, Most{2}, Most{5});
    io("maybe", maybe);
    io("pairs", pairs, kMostEntries, Between{0, 9});
    io("colour", colour, Between{Colour::kRed, Colour::kGreen});
    io("time", time, kUpToADay);
    io("variables", variables, kMostEntries);
    io("any", any);
  }
};

Message Full() {
  return {{-5},
          true,
          "a b",
          {"x", ""},
          {{"k", "v"}, {"l", ""}},
          7,
          {{1, 2}, {3, 4}},
          Colour::kGreen,
          std::chrono::hours(24),
          {{"A", "1"}},
          true};
}

std::string ErrorOf(const Message& message) {
  const Result<Message> read = Decode<Message>(Encode(message), "test");
  return read ? "" : read.error().text;
}

std::string Frame(const std::string& payload) {
  Writer writer;
  writer.Rest("payload", payload);
  return std::move(writer).Frame();
}

TEST(Coder, CarriesEveryKindOfField) {
  const Message got = Decode<Message>(Encode(Full()), "test").value();
  EXPECT_EQ(got.inner.number, -5);
  EXPECT_TRUE(got.flag);
  EXPECT_EQ(got.text, "a b");
  EXPECT_EQ(got.texts, (std::vector<std::string>{"x", ""}));
  EXPECT_EQ(got.map, (Map{{"k", "v"}, {"l", ""}}));
  EXPECT_EQ(got.maybe, 7);
  EXPECT_EQ(got.pairs, (std::vector<std::pair<int, int>>{{1, 2}, {3, 4}}));
  EXPECT_EQ(got.colour, Colour::kGreen);
  EXPECT_EQ(got.time, std::chrono::hours(24));
  EXPECT_EQ(got.variables.at("A"), "1");
  EXPECT_TRUE(std::get<bool>(got.any));
}

TEST(Coder, WritesTheBytesThatItsHeaderDescribes) {
  Message message;
  message.text = std::string("a\0", 2);
  message.maybe = 1;
  const std::string number(8, '\0'), none(4, '\0');
  EXPECT_EQ(Encode(message), number + '\0' + std::string("\2\0\0\0a\0", 6) + none + none +
                                 std::string("\1\1\0\0\0", 5) + none + '\0' + number + none + '\0' + number);
}

TEST(Coder, RefusesEveryTruncation) {
  const std::string bytes = Encode(Full());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(Decode<Message>(std::string_view(bytes).substr(0, size), "test")) << size;
  EXPECT_EQ(Decode<Message>(bytes + "x", "test").error().text, "malformed test: bytes follow its last field");
}

TEST(Coder, NamesTheFieldBeyondItsLimit) {
  EXPECT_EQ(ErrorOf(Full()), "");
  const auto error = [](auto change) {
    Message message = Full();
    change(message);
    return ErrorOf(message);
  };
  EXPECT_EQ(error([](Message& m) { m.inner.number = 6; }), "malformed test: number 6 is not from -5 to 5");
  EXPECT_EQ(error([](Message& m) { m.text = "abcd"; }),
            "malformed test: text has 4 entries or bytes, more than 3");
  EXPECT_EQ(error([](Message& m) { m.text = "\x1b["; }), "malformed test: text has control characters");
  EXPECT_THAT(error([](Message& m) { m.texts = {"a", "b", "c"}; }), HasSubstr("texts has 3"));
  EXPECT_THAT(error([](Message& m) { m.texts = {"aa"}; }), HasSubstr("texts has 2"));
  EXPECT_THAT(error([](Message& m) { m.map = {{"a", "123456"}}; }), HasSubstr("map has 6"));
  EXPECT_THAT(error([](Message& m) { m.pairs = {{1, 10}}; }), HasSubstr("pairs 10 is not from 0 to 9"));
  EXPECT_THAT(error([](Message& m) { m.colour = Colour{2}; }), HasSubstr("colour 2 is not from 0 to 1"));
  EXPECT_THAT(error([](Message& m) { m.time = -m.time; }), HasSubstr("time"));
}

TEST(Coder, RefusesAMapWithAKeyTwice) {
  const std::string bytes = Encode(std::vector<std::string>{"a", "1", "a", "2"});
  Map map;
  const std::string twice = std::string("\2\0\0\0", 4) + bytes.substr(4);
  Reader reader(twice);
  reader("map", map, kMostEntries);
  EXPECT_EQ(reader.Finish("test").error().text, "malformed test: map has keys that do not ascend");
}

TEST(Coder, RefusesAnUnknownAlternative) {
  EXPECT_THAT((Decode<std::variant<Inner, bool>>("\2", "test").error().text), HasSubstr("unknown kind 2"));
}

TEST(Coder, CarriesAnErrorWholeAndWithAnIdThatIsNotKnownThere) {
  const Error error{DTRUN_MISMATCH,        "call 2 differs", 1,
                    ErrorId::kCallsDiffer, {0, 1},           {{"communicator", "world"}}};
  const std::string bytes = Encode(error);
  const auto got = wire::Decode<ReadError>(bytes, "error");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error.id, ErrorId::kCallsDiffer);
  EXPECT_EQ(got->error.ranks, error.ranks);
  EXPECT_EQ(got->error.args, error.args);
  std::string newer = bytes;
  newer.replace(newer.find("comm.calls"), 4, "zzzz");
  EXPECT_EQ(wire::Decode<ReadError>(newer, "error")->error.Id(), "mismatch");
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
}  // namespace dtrun::wire
