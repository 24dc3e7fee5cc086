#include "core/spec/lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/spec/job_spec.h"

namespace dtrun::spec {
namespace {

using ::testing::ElementsAre;

TEST(Lookup, KnowsOptionsAndTables) {
  EXPECT_NE(FindSpec(CoreSchema(), "backend.name"), nullptr);
  EXPECT_EQ(FindSpec(CoreSchema(), "backend"), nullptr);
  EXPECT_TRUE(IsTable(CoreSchema(), "backend"));
  EXPECT_TRUE(IsTable(CoreSchema(), "backend.options"));
  EXPECT_EQ(FindSpec(CoreSchema(), "job.lone_worlds"), FindSpec(CoreSchema(), "job.isolated_ranks"));
  EXPECT_FALSE(IsTable(CoreSchema(), "back"));
  EXPECT_FALSE(IsTable(CoreSchema(), "backend.name"));
}

TEST(Lookup, ListsTheNamesOfATable) {
  EXPECT_THAT(NamesIn(CoreSchema(), ""),
              ElementsAre("job", "cluster", "launcher", "backend", "plugins", "python", "comm", "network",
                          "restart", "watch", "metrics", "trace", "failures", "logs", "output"));
  EXPECT_THAT(NamesIn(CoreSchema(), "backend"),
              ElementsAre("name", "path", "sha256", "staging", "torch", "timeout", "options"));
}

TEST(NearestKey, LooksBesideTheKeyFirstAndThenElsewhere) {
  EXPECT_EQ(NearestKey(CoreSchema(), "backend.nam"), "backend.name");
  EXPECT_EQ(NearestKey(CoreSchema(), "launcher.nam"), "launcher.name");
  EXPECT_EQ(NearestKey(CoreSchema(), "netwrk.interface"), "network.interface");
  EXPECT_EQ(NearestKey(CoreSchema(), "jbo.nam"), "job.name") << "a slip in each part";
  EXPECT_EQ(NearestKey(CoreSchema(), "bakend"), "backend");
  EXPECT_EQ(NearestKey(CoreSchema(), "command"), "job.command");
  EXPECT_EQ(NearestKey(CoreSchema(), "job.timeout"), "job.time_limit");
  EXPECT_EQ(NearestKey(CoreSchema(), "timeout"), "job.time_limit");
  EXPECT_EQ(NearestKey(CoreSchema(), "job.nodes"), "cluster.host_count");
  EXPECT_EQ(NearestKey(CoreSchema(), "cluster.nodes"), "cluster.hosts");
  EXPECT_EQ(NearestKey(CoreSchema(), "bakend.name"), "backend.name") << "a name that several tables have";
  EXPECT_EQ(NearestKey(CoreSchema(), "wibble"), "");
}

TEST(UnknownHint, DescribesWhatWasMeant) {
  EXPECT_EQ(UnknownHint(CoreSchema(), "backend.nam", false, ""),
            "did you mean 'name' (string or list of strings, default \"gloo\")? see: dtrun config explain "
            "backend.name");
  EXPECT_EQ(UnknownHint(CoreSchema(), "backend.nam", true, ""),
            "did you mean 'backend.name' (string or list of strings, default \"gloo\")? see: dtrun config "
            "explain backend.name");
  EXPECT_EQ(
      UnknownHint(CoreSchema(), "backend.wibble", false, ""),
      "known here: name, path, sha256, staging, torch, timeout, options; see: dtrun config explain backend");
  EXPECT_EQ(
      UnknownHint(CoreSchema(), "wibble", false, ""),
      "tables: job, cluster, launcher, backend, plugins, python, comm, network, restart, watch, metrics, "
      "trace, failures, logs, output");
  EXPECT_EQ(
      UnknownHint(CoreSchema(), "job.timeout", true, ""),
      "did you mean 'job.time_limit' (duration) or 'backend.timeout' (duration, default \"60s\")? see: dtrun "
      "config explain job.time_limit");
  EXPECT_EQ(UnknownHint(CoreSchema(), "backend.options.wibble", false, "gloo"), "gloo has no options here");
}

TEST(Summary, TellsTypeAndDefault) {
  EXPECT_EQ(Summary(*FindSpec(CoreSchema(), "job.command")), "(list of strings, required)");
  EXPECT_EQ(Summary(*FindSpec(CoreSchema(), "job.grace")), "(duration, default \"10s\")");
  EXPECT_EQ(Summary(*FindSpec(CoreSchema(), "job.cwd")), "(path)");
  EXPECT_EQ(Summary(*FindSpec(CoreSchema(), "job.processes_per_host")),
            "(number or one of \"cpu\", \"gpu\", \"auto\", default 1)");
}

TEST(KeyNamed, IsTheOneOfJobOrTheOnlyOne) {
  EXPECT_EQ(KeyNamed(CoreSchema(), "name"), "job.name");
  EXPECT_EQ(KeyNamed(CoreSchema(), "join-timeout"), "cluster.join_timeout");
  EXPECT_EQ(KeyNamed(CoreSchema(), "logs.dir"), "logs.dir");
  EXPECT_EQ(KeyNamed(CoreSchema(), "epochs"), "");
}

}  // namespace
}  // namespace dtrun::spec
