#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/dtrun/torchrun/arguments.h"
#include "tools/dtrun/torchrun/translate.h"

namespace dtrun::torchrun {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;
using From = Secret::From;

Secret Of(Words words, const std::map<std::string, std::string>& environment = {}) {
  words.push_back("train.py");
  const auto parsed = Parse(Program::kTorchrun, words, environment);
  EXPECT_TRUE(parsed.ok());
  const auto rendezvous =
      RendezvousOf(parsed->arguments, "uuid", [](const std::string&, int) { return false; });
  EXPECT_TRUE(rendezvous.ok());
  return SecretOf(parsed->arguments, *rendezvous);
}

TEST(Secret, IsARunIdThatNobodyGuesses) {
  EXPECT_TRUE(IsHardToGuess("0f8fad5b-d9cb-469f-a165-70867728950e"));
  EXPECT_TRUE(IsHardToGuess("9d1c6fe2a4b05378"));
  for (const char* id : {"", "none", "job17", "457921", "distributed-training", "1111111111111111",
                         "a-very-long-name-of-a-job-without-any-number"}) {
    EXPECT_FALSE(IsHardToGuess(id)) << id;
  }
}

TEST(Secret, NodesThatMeetElsewhereNeedOne) {
  const Words classic = {"--nnodes=2", "--node-rank=1", "--master-addr=node0", "--master-port=29500"};
  const Secret none = Of(classic);
  EXPECT_EQ(none.from, From::kNothing);
  EXPECT_THAT(none.refusal, HasSubstr("no --rdzv-id: anyone who reaches node0 port 29500"));
  EXPECT_THAT(none.refusal, HasSubstr("~/.dtrun/key"));
  EXPECT_EQ(none.refusal.find('\n'), std::string::npos);

  const Words c10d = {"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node0"};
  EXPECT_THAT(Of(c10d, {{"PET_RDZV_ID", "job17"}}).refusal, HasSubstr("PET_RDZV_ID=job17 can be guessed"));
  EXPECT_EQ(Of({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node0", "--rdzv-id="}).from,
            From::kNothing);
}

TEST(Secret, MayBeTheRunIdWithANoteWhereOthersSeeIt) {
  const std::string uuid = "0f8fad5b-d9cb-469f-a165-70867728950e";
  const Words c10d = {"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node0"};
  const Secret variable = Of(c10d, {{"PET_RDZV_ID", uuid}});
  EXPECT_EQ(variable.from, From::kRunId);
  EXPECT_THAT(variable.note, IsEmpty());
  const Secret option = Of({c10d[0], c10d[1], c10d[2], "--rdzv-id", uuid});
  EXPECT_EQ(option.from, From::kRunId);
  EXPECT_THAT(option.note, HasSubstr("process list"));
}

TEST(Secret, IsNotAskedForByOneHostOrWhoDoesWithout) {
  for (const char* host : {"localhost", "127.0.0.1", "[::1]"}) {
    EXPECT_EQ(Of({"--nnodes=2", "--master-addr", host}).from, From::kThisHost);
  }
  const Secret insecure = Of({"--nnodes=2", "--master-addr=node0", "--rdzv-conf=insecure=true"});
  EXPECT_EQ(insecure.from, From::kRunId);
  EXPECT_THAT(insecure.note, HasSubstr("insecure=true"));
  EXPECT_THAT(Of({}).refusal, IsEmpty()) << "one node";
}

}  // namespace
}  // namespace dtrun::torchrun
