// Users' own failure files: their entries come first, and errors are reported with their place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <fstream>

#include "core/base/fd.h"
#include "core/failures/finding.h"
#include "core/failures/table.h"

namespace dtrun::failures {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class OwnFiles : public ::testing::Test {
 protected:
  OwnFiles() {
    char name[] = "/tmp/dtrun-failures-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~OwnFiles() override {
    UseFiles({});
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path Write(const std::string& text) {
    std::ofstream(folder_ / "own.toml") << text;
    return folder_ / "own.toml";
  }
  std::string At(const std::string& place) { return (folder_ / "own.toml").string() + place; }

  std::filesystem::path folder_;
};

constexpr char kGood[] =
    "[[failure]]\nid = \"site-scratch\"\ntexts = [\"scratch of {user} is full\"]\n"
    "what = \"the scratch folder of {user} is full\"\nfix = \"run `tidy-scratch`\"\n";

TEST_F(OwnFiles, AreReadBeforeTheShippedOne) {
  UseFiles(
      {Write(std::string(kGood) +
             "[[failure]]\nid = \"port-in-use\"\ntexts = [\"EADDRINUSE\"]\nwhat = \"w\"\nfix = \"f\"\n")});
  EXPECT_THAT(Known()->problems(), IsEmpty());
  const auto own = FindFailures("error: scratch of ada is full\n");
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0].failure->id, "site-scratch");
  EXPECT_EQ(own[0].what, "the scratch folder of ada is full");
  EXPECT_EQ(FindFailures("EADDRINUSE").at(0).what, "w");
  EXPECT_EQ(FindFailures("Bootstrap : no socket interface found").at(0).failure->id, "nccl-no-interface");
}

TEST_F(OwnFiles, AreReadAheadOfTheFirstSearch) {
  const std::filesystem::path file = Write(kGood);
  UseFiles({file});
  const UniqueFd watch(inotify_init1(IN_CLOEXEC));
  inotify_add_watch(watch.get(), file.c_str(), IN_CLOSE_NOWRITE);
  {
    const ReadAhead ahead(std::chrono::milliseconds(0));
    char event[4096];
    ASSERT_GT(read(watch.get(), event, sizeof event), 0);
  }
  Write("");
  EXPECT_EQ(FindFailures("error: scratch of ada is full\n").size(), 1u);
}

TEST_F(OwnFiles, ABadEntryIsToldAndTheOthersCount) {
  const Table table(
      {Write("[[failure]]\nid = \"a\"\ntexts = [\"long enough\"]\nwhta = \"w\"\nwhat = \"w\"\nfix = \"f\"\n"
             "[[failure]]\nid = \"b\"\ntexts = [\"abc{d}\"]\nwhat = \"says {e}\"\nkind = \"disk\"\n" +
             std::string(kGood))});
  ASSERT_EQ(table.failures().size(), 1u);
  EXPECT_EQ(table.failures()[0]->id, "site-scratch");
  EXPECT_THAT(
      table.problems(),
      ElementsAre(
          At(":4:1: key 'whta' of failure 'a' is unknown; did you mean 'what'?"),
          At(":9:10: key 'texts' of failure 'b' holds string \"abc{d}\", which begins with less than 5 bytes "
             "of plain "
             "text; give more of what the library prints"),
          At(":10:8: key 'what' of failure 'b' says {e}, which text 'abc{d}' does not have; put that part "
             "into [ ]"),
          At(":7:1: key 'fix' of failure 'b' is missing; every failure needs it"),
          At(":11:8: key 'kind' of failure 'b' is 'disk'; give one of network, rendezvous, memory, "
             "connection, calls")));
}

TEST_F(OwnFiles, WhatIsNoTomlOrNoFileIsTold) {
  const Table broken({Write("[[failure]]\nid = \n")});
  EXPECT_THAT(broken.problems(), ElementsAre(HasSubstr(At(":2:"))));
  const Table other({Write("failures = 3\n")});
  EXPECT_THAT(other.problems(),
              ElementsAre(At(":1:1: 'failures' is not known here; write each failure as [[failure]]")));
  const Table missing({folder_ / "none.toml"});
  EXPECT_THAT(missing.problems(), ElementsAre(HasSubstr("none.toml: cannot open the file: no such file")));
  EXPECT_THAT(FindFailures(missing, "EADDRINUSE"), IsEmpty());
}

TEST_F(OwnFiles, MayHaveFallbackLevels) {
  const Table table(
      {Write("[[fallback]]\npath = \"fabric\"\nvariables = [\"FABRIC=off\"]\nsaid = \"without the fabric\"\n"
             "[[fallback]]\npath = \"other\"\nvariables = [\"OTHER\"]\nsaid = \"w\"\n")});
  ASSERT_EQ(table.fallbacks().size(), 1u);
  EXPECT_EQ(table.fallbacks()[0].variables.at(0), std::pair(std::string("FABRIC"), std::string("off")));
  EXPECT_THAT(table.problems(),
              ElementsAre(At(":7:14: key 'variables' of fallback 'other' holds string \"OTHER\", "
                             "which is no NAME=value; give one")));
}

TEST_F(OwnFiles, NeedsTheNamesThatItsTextsCapture) {
  const Table table({Write(kGood)});
  EXPECT_THAT(FindFailures(table, "scratch of  is full"), IsEmpty());
}

TEST(Facts, AreToldWhereASentenceAsksForThem) {
  constexpr char kDiffer[] = "op.preamble.length <= op.nbytes. 32 vs 16";
  EXPECT_THAT(FindFailures(kDiffer).at(0).fix, StartsWith("set TORCH_DISTRIBUTED_DEBUG=DETAIL in job.env"));
  EXPECT_THAT(FindFailures(kDiffer, {{"calls", "runs/x/calls.txt"}}).at(0).fix,
              StartsWith("compare runs/x/calls.txt, or set TORCH_DISTRIBUTED_DEBUG=DETAIL in job.env"));
}

}  // namespace
}  // namespace dtrun::failures
