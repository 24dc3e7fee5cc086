#include "core/failures/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json.h"

namespace dtrun::failures {
namespace {

constexpr char kText[] =
    "ncclInternalError: Internal check failed.\n"
    "Last error:\n"
    "Bootstrap : no socket interface found\n";

TEST(Report, ToldToPeopleBeginsWithTheCause) {
  EXPECT_EQ(
      ToText(FindFailures(kText), "rank-0.err"),
      "known failure: NCCL found no network interface that it may use\n"
      "  seen in rank-0.err, line 3:\n"
      "    | Bootstrap : no socket interface found\n"
      "  next: correct NCCL_SOCKET_IFNAME in job.env: it names no running interface of this host; with "
      "dtrun's nccl backend, backend.nccl.interface\n"
      "  reference: nccl-no-interface, printed by NCCL bootstrap.cc, net_socket.cc\n"
      "\n"
      "known symptom: NCCL failed in one of seven ways and did not say which\n"
      "  seen in rank-0.err, line 1:\n"
      "    | ncclInternalError: Internal check failed.\n"
      "  next: set NCCL_DEBUG = \"WARN\" in job.env and run again: the warning before the error names the "
      "cause\n"
      "  reference: nccl-internal-error, printed by NCCL, torch\n");
  EXPECT_EQ(
      ToText({}, ""),
      "no known failure in this text; give the lines around the first error, or the file with the log\n");
}

TEST(Report, OfALineTellsTheSpecialAlone) {
  const std::string text =
      ToText(FindFailures("ssh: Could not resolve hostname [fd00::2]: Name or service not known"), "");
  EXPECT_EQ(text,
            "known failure: ssh was given the IPv6 address fd00::2 in brackets\n"
            "    | ssh: Could not resolve hostname [fd00::2]: Name or service not known\n"
            "  next: write it without brackets: ssh and its config take them only in a URI\n"
            "  reference: ssh-name-in-brackets, printed by OpenSSH\n");
}

TEST(Report, SaysThatASymptomIsOne) {
  EXPECT_THAT(ToText(FindFailures("Segmentation fault"), ""), ::testing::HasSubstr("\nThis is a symptom. "));
  EXPECT_THAT(ToText(FindFailures(kText), ""), ::testing::Not(::testing::HasSubstr("This is a symptom")));
}

TEST(Report, OfWordsAloneLeavesOutWhatTheyDoNotSay) {
  const std::string text = ToText(FindMentions("received by pid"));
  EXPECT_THAT(text, ::testing::HasSubstr("\na rank under torchrun was killed (SIGKILL)\n  its text:\n"));
}

TEST(Report, PutsATextOfSeveralLinesOnSeveral) {
  EXPECT_THAT(ToText(FindMentions("lost communication with a remote da")),
              ::testing::HasSubstr(
                  "\n    | ORTE has lost communication with a remote daemon.\n    | Remote daemon: "));
}

TEST(Report, ToldToProgramsMarksTheForemost) {
  const auto json = ToJson(FindFailures(kText));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["id"], "nccl-internal-error");
  EXPECT_EQ(json[0]["depth"], "symptom");
  EXPECT_EQ(json[0]["foremost"], false);
  EXPECT_EQ(json[1]["foremost"], true);
  EXPECT_EQ(json[1]["line"], 3);
  EXPECT_EQ(json[1]["text"], "Bootstrap : no socket interface found");
}

}  // namespace
}  // namespace dtrun::failures
