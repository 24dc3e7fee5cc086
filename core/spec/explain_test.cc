#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/spec/read.h"
#include "core/spec/testing.h"

namespace dtrun::spec {
namespace {

using ::testing::HasSubstr;

JobSpec WithTimeout() {
  Request request;
  request.command = {"true"};
  request.sets = {"backend.timeout=30s"};
  return Load(request, {}).spec;
}

TEST(Explain, TellsEverythingAboutAnOption) {
  EXPECT_EQ(*Explain(WithTimeout(), "backend.timeout"),
            "backend.timeout: longest wait for peers in one operation\n"
            "  value     \"30s\"\n"
            "  origin    --set backend.timeout on the command line\n"
            "  type      duration\n"
            "  default   \"1m\"\n"
            "  range     1ms to 24h\n"
            "  scope     job: equal on all ranks\n"
            "  since     0.1\n"
            "  read by   communicator\n"
            "  variable  DTRUN_CONFIG_BACKEND_TIMEOUT\n");
}

TEST(Explain, TellsWordsUnitsAndRequirements) {
  const std::string count = *Explain(WithTimeout(), "job.processes_per_host");
  EXPECT_THAT(count, HasSubstr("  value     1\n  origin    default\n"));
  EXPECT_THAT(count, HasSubstr("one of \"cpu\", \"gpu\", \"auto\"\n"));
  EXPECT_THAT(count, HasSubstr("  unit      processes\n"));
  const std::string command = *Explain(WithTimeout(), "job.command");
  EXPECT_THAT(command, HasSubstr("  value     [\"true\"]\n  origin    command line\n"));
  EXPECT_THAT(command, HasSubstr("  default   none: a value is required\n"));
  EXPECT_THAT(*Explain(WithTimeout(), "job.cwd"), HasSubstr("  value     unset\n"));
  EXPECT_THAT(*Explain(WithTimeout(), "job.env.PATH"), HasSubstr("job.env: environment variables"));
}

TEST(Explain, ListsTheOptionsOfATable) {
  EXPECT_THAT(*Explain(WithTimeout(), "logs"),
              HasSubstr("logs: a table\n  logs.dir: folder of one run, with a log per rank\n  logs.mode: "));
}

TEST(Explain, SuggestsTheNearestKey) {
  const auto text = Explain(WithTimeout(), "backend.timeot");
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, DTRUN_NOT_FOUND);
  EXPECT_THAT(text.error().text,
              HasSubstr("unknown option 'backend.timeot'; did you mean 'backend.timeout'"));
}

}  // namespace
}  // namespace dtrun::spec
