#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/spec/read.h"
#include "core/spec/testing.h"

namespace dtrun::spec {
namespace {

using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

constexpr char kFile[] =
    "[job]\ncommand = [\"x\"]\ngrace = \"1s\"\nenv = { A = 1 }\n[backend]\nname = \"none\"\n";

class OverrideTest : public ::testing::Test {
 protected:
  JobSpec Good() {
    request_.file = folder_.Write("train.toml", kFile);
    Loaded loaded = Load(request_, {});
    EXPECT_EQ(folder_.Short(loaded.problems), "");
    return std::move(loaded.spec);
  }
  JobSpec Set(Texts sets) {
    request_.sets = std::move(sets);
    return Good();
  }
  std::string Refusal(const std::string& set) {
    request_.sets = {set};
    return folder_.ProblemsOf(kFile, request_);
  }

  TestFolder folder_;
  Request request_;
};

TEST_F(OverrideTest, RisesFromFileOverEnvironmentToTheCommandLine) {
  EXPECT_EQ(Good().job.grace.value.origin.kind, DTRUN_ORIGIN_FILE);
  request_.environment = {{"DTRUN_CONFIG_JOB_GRACE", "2s"}, {"PATH", "/bin"}};
  const JobSpec with_variable = Good();
  EXPECT_EQ(*with_variable.job.grace, std::chrono::seconds(2));
  EXPECT_EQ(with_variable.job.grace.value.origin.place, "DTRUN_CONFIG_JOB_GRACE");
  const JobSpec with_set = Set({"job.grace=3s", "job.grace=4s"});
  EXPECT_EQ(*with_set.job.grace, std::chrono::seconds(4)) << "the last --set wins";
  EXPECT_EQ(with_set.job.grace.value.origin.kind, DTRUN_ORIGIN_COMMAND_LINE);
  EXPECT_EQ(with_set.job.grace.value.origin.place, "--set job.grace");
}

TEST_F(OverrideTest, ShowsNoSecretOfAValueThatItRefuses) {
  for (const char* set : {"job.env=DB_PASSWORD:sekret1", "job.env={DB_PASSWORD:sekret1}",
                          "job.ranks=PASSWORD:sekret1", "job.env=API_KEY:sekret1", "DB_PASSWORD:sekret1",
                          "DB_PASSWORD:sekret1=1", "job.env.DB_PASSWORD=\"sekret1\\u0000\"",
                          "backend.name=gloo,PASSWORD:sekret1", "logs.dir=PASSWORD:sekret1/{x}"}) {
    const std::string refusal = Refusal(set);
    EXPECT_EQ(refusal.find("sekret1"), std::string::npos) << refusal;
  }
  request_.sets = {};
  request_.environment = {{"DTRUN_CONFIG_JOB_ENV", "DB_PASSWORD:sekret1"}};
  EXPECT_THAT(folder_.ProblemsOf(kFile, request_), HasSubstr("found \"DB_PASSWORD:(secret)\""));
}

TEST_F(OverrideTest, TakesValuesOfAnotherSpellingBelowTheFileAndAboveIt) {
  const options::Origin torchrun{DTRUN_ORIGIN_COMMAND_LINE, "--shutdown-timeout"};
  request_.base = {{"job.grace", "5s", torchrun}, {"output.prefix", "none", {}}};
  JobSpec spec = Good();
  EXPECT_EQ(*spec.job.grace, std::chrono::seconds(1)) << "the file is above the base";
  EXPECT_EQ(*spec.output.prefix, "none");
  request_.given = {{"job.grace", "6s", torchrun}, {"job.command", Texts{"a", "[b]"}, torchrun}};
  spec = Set({"job.grace=6s"});
  EXPECT_EQ(*spec.job.grace, std::chrono::seconds(6));
  EXPECT_EQ(spec.job.grace.value.origin.place, "--shutdown-timeout");
  EXPECT_EQ(*spec.job.command, (Texts{"a", "[b]"}));
}

TEST_F(OverrideTest, RefusesAFlagAndASetWithDifferentValues) {
  request_.given = {{"job.grace", "6s", {DTRUN_ORIGIN_COMMAND_LINE, "--grace"}}};
  EXPECT_EQ(Refusal("job.grace=3s"),
            "dtrun: --grace=6s: job.grace: --set job.grace=3s sets it too; leave one of the two out; "
            "see: dtrun config explain job.grace\n");
}

TEST_F(OverrideTest, NamesWhatWasTypedInAnotherSpelling) {
  request_.given = {
      {"job.processes_per_host", "0", {DTRUN_ORIGIN_COMMAND_LINE, "--nproc-per-node"}},
      {"job.grace", "soon", {DTRUN_ORIGIN_ENVIRONMENT, "PET_SHUTDOWN_TIMEOUT"}},
  };
  const std::string problems = folder_.ProblemsOf(kFile, request_);
  EXPECT_THAT(problems, HasSubstr("--nproc-per-node=0: job.processes_per_host: expected a number from 1"));
  EXPECT_THAT(problems, HasSubstr("PET_SHUTDOWN_TIMEOUT: job.grace: expected a duration"));
}

TEST_F(OverrideTest, TakesTomlWhereItFitsAndPlainTextElsewhere) {
  const JobSpec spec = Set({"job.name=123", "job.processes_per_host=4", "job.command=[\"a\", \"b,c\"]",
                            "launcher.name=\"quoted\"", "backend.timeout=\"5s\"", "plugins.path=/usr,/",
                            "output.prefix=none"});
  EXPECT_EQ(*spec.job.name, "123");
  EXPECT_EQ(*spec.job.processes_per_host, 4);
  EXPECT_EQ(*spec.job.command, (Texts{"a", "b,c"}));
  EXPECT_EQ(*spec.launcher.name, "quoted");
  EXPECT_EQ(*spec.backend.timeout, std::chrono::seconds(5));
  EXPECT_EQ(*spec.plugins.path, (Texts{"/usr", "/"}));
  EXPECT_EQ(*spec.output.prefix, "none");
  EXPECT_EQ(*Set({"job.command=a, b"}).job.command, (Texts{"a", "b"}));
}

TEST_F(OverrideTest, TakesRelativePathsFromTheCurrentFolder) {
  EXPECT_EQ(*Set({"backend.path=lib/b.so"}).backend.path, std::filesystem::current_path() / "lib/b.so");
}

TEST_F(OverrideTest, SetsSingleVariablesOfTheJob) {
  const auto env = *Set({"job.env.B=two words", "job.env.A=\"2\"", "job.env.C="}).job.env;
  EXPECT_EQ(env, (std::map<std::string, std::string>{{"A", "2"}, {"B", "two words"}, {"C", ""}}));
  EXPECT_EQ(*Set({"job.env={ X = 1 }", "job.env.Y=true"}).job.env,
            (std::map<std::string, std::string>{{"X", "1"}, {"Y", "true"}}));
  request_.environment = {{"DTRUN_CONFIG_JOB_ENV", "P=1,Q=2"}};
  EXPECT_EQ(*Set({}).job.env, (std::map<std::string, std::string>{{"P", "1"}, {"Q", "2"}}));
}

TEST_F(OverrideTest, ExplainsWhatIsWrongWithASet) {
  EXPECT_EQ(Refusal("backend.nam=x"),
            "dtrun: --set backend.nam=x: unknown option 'backend.nam'; "
            "did you mean 'backend.name' (string or list of strings, default \"gloo\")? see: dtrun "
            "config explain backend.name\n");
  EXPECT_EQ(Refusal("backend.name"),
            "dtrun: --set backend.name: expected key=value; for example: --set backend.timeout=30s\n");
  EXPECT_THAT(Refusal("=x"), HasSubstr("expected key=value"));
  EXPECT_THAT(Refusal(""), HasSubstr("expected key=value"));
  EXPECT_THAT(Refusal("logs=x"), HasSubstr("--set logs=x: 'logs' is a table; set one of its options; see"));
  EXPECT_THAT(Refusal("backend=nccl"), HasSubstr("set one of its options; did you mean backend.name=nccl?"));
  EXPECT_THAT(Refusal("output.fold=True"),
              HasSubstr("expected true or false; found \"True\", did you mean true?"));
  EXPECT_THAT(Refusal("job.grace=60"), HasSubstr("--set job.grace=60: expected a duration such as"));
  EXPECT_THAT(Refusal("job.command=[a"),
              HasSubstr("expected a list of strings; found \"[a\", which is not TOML"));
  EXPECT_THAT(Refusal("job.command=[1]"), HasSubstr("job.command[0]: expected a string; found integer 1"));
  EXPECT_THAT(Refusal("job.env.=x"), HasSubstr("the name \"\" is empty"));
  EXPECT_THAT(Refusal("job.name=\xff"), HasSubstr("expected UTF-8; found byte 0xff"));
}

TEST_F(OverrideTest, ShowsOnlyTheStartOfALongSet) {
  EXPECT_THAT(Refusal("job.grace=" + std::string(500, 'x')),
              HasSubstr("--set job.grace=" + std::string(50, 'x') + "...: expected a duration"));
}

TEST_F(OverrideTest, ReportsAnUnknownVariableWithTheNearestName) {
  request_.environment = {
      {"DTRUN_CONFIG_BACKEND_NAM", "x"}, {"DTRUN_CONFIG_WIBBLE", "x"}, {"DTRUN_RANK", "0"}};
  EXPECT_EQ(folder_.ProblemsOf(kFile, request_),
            "dtrun: DTRUN_CONFIG_BACKEND_NAM: unknown option in the environment; "
            "did you mean DTRUN_CONFIG_BACKEND_NAME (string or list of strings, default \"gloo\")? see: "
            "dtrun config explain "
            "backend.name\n"
            "dtrun: DTRUN_CONFIG_WIBBLE: unknown option in the environment; "
            "the name is DTRUN_CONFIG_ and the key in capitals, such as DTRUN_CONFIG_BACKEND_NAME\n");
}

TEST_F(OverrideTest, ReportsABadVariableByItsName) {
  request_.environment = {{"DTRUN_CONFIG_JOB_PROCESSES_PER_HOST", "0"}};
  EXPECT_THAT(
      folder_.ProblemsOf(kFile, request_),
      HasSubstr("DTRUN_CONFIG_JOB_PROCESSES_PER_HOST: job.processes_per_host: expected a number from 1"));
}

TEST(EnvironmentName, IsTheKeyInCapitals) {
  EXPECT_EQ(EnvironmentName("backend.name"), "DTRUN_CONFIG_BACKEND_NAME");
  EXPECT_EQ(EnvironmentName("backend.options.if_name"), "DTRUN_CONFIG_BACKEND_OPTIONS_IF_NAME");
}

TEST_F(OverrideTest, NamesTheFlagThatWasTyped) {
  request_.spelled = {{"--set job.grace=soon", "--patience"}, {"--set job.grace=5s", "-p"}};
  EXPECT_THAT(Refusal("job.grace=soon"), HasSubstr("dtrun: --patience=soon: job.grace: expected a duration"));
  EXPECT_EQ(Set({"job.grace=5s"}).job.grace.value.origin.place, "-p");
  EXPECT_EQ(Set({"job.grace=6s"}).job.grace.value.origin.place, "--set job.grace");
}

}  // namespace
}  // namespace dtrun::spec
