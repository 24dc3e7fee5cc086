#include "core/pmi/pmi1_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::pmi {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// The next request, which must be complete.
Pmi1Request Take(Pmi1Reader& reader) {
  Result<std::optional<Pmi1Request>> next = reader.Next();
  if (next && *next) return **std::move(next);
  ADD_FAILURE() << (next ? "no whole request" : next.error().text);
  return {};
}

bool WantsMore(Pmi1Reader& reader) {
  Result<std::optional<Pmi1Request>> next = reader.Next();
  return next && !*next;
}

std::string FailureOf(std::string_view bytes) {
  Pmi1Reader reader;
  reader.Append(bytes);
  Result<std::optional<Pmi1Request>> next = reader.Next();
  EXPECT_FALSE(next);
  EXPECT_FALSE(reader.Next()) << "goes on after an error";
  return next ? "" : next.error().text;
}

TEST(Pmi1Reader, ReadsARequestWithItsFields) {
  Pmi1Reader reader;
  reader.Append("cmd=put kvsname=job.0 key=P0-card value=port#1$host=a\n");
  const Pmi1Request request = Take(reader);
  EXPECT_EQ(request.command, "put");
  EXPECT_THAT(request.fields, UnorderedElementsAre(Pair("kvsname", "job.0"), Pair("key", "P0-card"),
                                                   Pair("value", "port#1$host=a")));
  EXPECT_EQ(request.Field("none"), "");
  EXPECT_TRUE(WantsMore(reader));
}

TEST(Pmi1Reader, TakesRequestsInWhateverPiecesTheyCome) {
  const std::string all = "cmd=barrier_in\ncmd=get kvsname=k  key=a \n";
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    Pmi1Reader reader;
    std::vector<std::string> commands;
    for (const std::string& piece : {all.substr(0, cut), all.substr(cut)}) {
      reader.Append(piece);
      for (;;) {
        Result<std::optional<Pmi1Request>> next = reader.Next();
        ASSERT_TRUE(next);
        if (!*next) break;
        commands.push_back((*next)->command);
      }
    }
    EXPECT_THAT(commands, ::testing::ElementsAre("barrier_in", "get")) << "cut at " << cut;
  }
}

TEST(Pmi1Reader, ReadsASpawnOfSeveralLinesAsOneRequest) {
  Pmi1Reader reader;
  reader.Append(
      "mcmd=spawn\nnprocs=2\nexecname=/bin/a b\ntotspawns=2\nspawnssofar=1\nargcnt=0\nendcmd\ncmd=init\n");
  const Pmi1Request spawn = Take(reader);
  EXPECT_EQ(spawn.command, "spawn");
  EXPECT_THAT(spawn.fields, UnorderedElementsAre(Pair("totspawns", "2"), Pair("spawnssofar", "1")));
  EXPECT_EQ(Take(reader).command, "init");
}

TEST(Pmi1Reader, RefusesWhatIsNoRequest) {
  EXPECT_THAT(FailureOf("GET / HTTP/1.1\n"), HasSubstr("PMI request 'GET / HTTP/1.1': a word without '='"));
  EXPECT_THAT(FailureOf("key=a\n"), HasSubstr("it has no cmd"));
  EXPECT_THAT(FailureOf("\n"), HasSubstr("it has no cmd"));
  EXPECT_THAT(FailureOf("cmd=put key=a key=b\n"), HasSubstr("a name is given twice"));
  EXPECT_THAT(FailureOf("mcmd=other\n"), HasSubstr("only spawn has several lines"));
  EXPECT_THAT(FailureOf(std::string(5000, 'x')), HasSubstr("it is longer than any that PMI-1 has"));
  EXPECT_THAT(FailureOf("cmd=" + std::string(5000, 'x') + "\n"), HasSubstr("longer"));
}

TEST(Pairs, ComeBackFromSeveralHosts) {
  const std::string both = EncodePairs({{"a", "1"}, {"b", ""}}) + EncodePairs({{"c", "x y"}});
  const auto pairs = DecodePairs(both);
  ASSERT_TRUE(pairs);
  EXPECT_THAT(*pairs, UnorderedElementsAre(Pair("a", "1"), Pair("b", ""), Pair("c", "x y")));
  EXPECT_THAT(*DecodePairs(""), IsEmpty());
  EXPECT_FALSE(DecodePairs("a 1"));
  EXPECT_FALSE(DecodePairs("a\n"));
}

}  // namespace
}  // namespace dtrun::pmi
