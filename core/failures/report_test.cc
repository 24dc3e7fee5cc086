#include "core/failures/report.h"

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
      "  next: correct backend.options.interface, or NCCL_SOCKET_IFNAME: it names no running interface of "
      "this host\n"
      "  rank-0.err, line 3; id nccl-no-interface; a text of NCCL bootstrap.cc, net_socket.cc\n"
      "    | Bootstrap : no socket interface found\n"
      "\n"
      "known symptom: NCCL failed in one of seven ways and did not say which\n"
      "  next: set NCCL_DEBUG = \"WARN\" in job.env and run again: the warning before the error names the "
      "cause\n"
      "  rank-0.err, line 1; id nccl-internal-error; a text of NCCL, torch\n"
      "    | ncclInternalError: Internal check failed.\n");
  EXPECT_EQ(
      ToText({}, ""),
      "no known failure in this text; give the lines around the first error, or the file with the log\n");
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
