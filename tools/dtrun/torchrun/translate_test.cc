#include "tools/dtrun/torchrun/translate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::torchrun {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

class TranslateTest : public ::testing::Test {
 protected:
  TranslateTest() {
    here_.log_base = "/tmp/torchelastic_r";
    here_.random = "r";
    here_.uuid = "uuid";
    here_.meet_here = [](const std::string&, int) { return true; };
  }

  Result<Translation> Run(const Words& words, Program program = Program::kTorchrun) {
    const auto parsed = Parse(program, words, here_.environment);
    EXPECT_TRUE(parsed.ok()) << parsed.error().text;
    return Translate(parsed.ok() ? parsed->arguments : Arguments{}, here_);
  }

  // Value of `key` after both layers, "" when there is none.
  std::string Value(const Words& words, const std::string& key, Program program = Program::kTorchrun) {
    const auto translated = Run(words, program);
    EXPECT_TRUE(translated.ok()) << translated.error().text;
    if (!translated.ok()) return "";
    std::string value;
    for (const auto* layer : {&translated->base, &translated->given}) {
      for (const spec::Given& given : *layer) {
        if (given.key == key && given.value.index() == 0) value = std::get<std::string>(given.value);
        if (given.key == key) place_ = given.origin.place;
      }
    }
    return value;
  }

  std::string Refusal(const Words& words) {
    const auto translated = Run(words);
    EXPECT_FALSE(translated.ok());
    return translated.ok() ? "" : translated.error().text;
  }

  Surroundings here_;
  std::string place_;
};

TEST_F(TranslateTest, IsAJobOfTheTorchrunLauncherWithTorchrunsDefaults) {
  EXPECT_EQ(Value({"a/train.py"}, "launcher.name"), "torchrun");
  EXPECT_EQ(Value({"a/train.py"}, "job.name"), "train");
  EXPECT_EQ(Value({"a/train.py"}, "job.grace"), "30s");
  EXPECT_EQ(Value({"a/train.py"}, "backend.name"), "none");
  EXPECT_EQ(Value({"a/train.py"}, "output.prefix"), "none");
  EXPECT_EQ(Value({"a/train.py"}, "job.processes_per_host"), "1");
  EXPECT_EQ(Value({"a/train.py"}, "logs.dir"), "/tmp/torchelastic_r/uuid_r");
  EXPECT_EQ(Value({"a/train.py"}, "launcher.options.entry"), "script");
  EXPECT_EQ(Value({"a/train.py"}, "launcher.options.error_files"), "attempt");
  EXPECT_EQ(Value({"a/train.py"}, "job.master_port"), "") << "any free one";
}

TEST_F(TranslateTest, GivesTheCommandAsItWasTyped) {
  const auto translated = Run({"train.py", "-x", "${y}", "$local_rank"});
  ASSERT_TRUE(translated.ok());
  for (const spec::Given& given : translated->given) {
    if (given.key != "job.command") continue;
    EXPECT_THAT(std::get<Words>(given.value), ElementsAre("train.py", "-x", "${y}", "$local_rank"));
    EXPECT_EQ(given.origin.place, "training_script");
  }
}

TEST_F(TranslateTest, NamesWhatWasTypedAsTheOrigin) {
  EXPECT_EQ(Value({"--nproc-per-node", " 4", "x"}, "job.processes_per_host"), "4");
  EXPECT_EQ(place_, "--nproc-per-node");
  here_.environment = {{"PET_NPROC_PER_NODE", "gpu"}, {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7"}};
  EXPECT_EQ(Value({"x"}, "job.processes_per_host"), "gpu");
  EXPECT_EQ(place_, "PET_NPROC_PER_NODE");
  EXPECT_EQ(Value({"x"}, "job.grace"), "7s");
  EXPECT_EQ(place_, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
  EXPECT_EQ(Value({"--shutdown-timeout", "5", "x"}, "job.grace"), "5s");
  EXPECT_EQ(place_, "--shutdown-timeout");
}

TEST_F(TranslateTest, ChoosesWhatTheFirstWordIs) {
  EXPECT_EQ(Value({"-m", "pkg.main"}, "launcher.options.entry"), "module");
  EXPECT_EQ(Value({"-m", "pkg.main"}, "job.name"), "pkg.main");
  EXPECT_EQ(Value({"--no-python", "./run.sh"}, "launcher.options.entry"), "command");
  EXPECT_EQ(Value({"--no-python", "--run-path", "/x.py"}, "launcher.options.entry"), "path");
}

TEST_F(TranslateTest, MeetsAtTheAddressThatWasGiven) {
  const Words words = {"--master-addr", "10.0.0.1", "--master-port", "1234", "x"};
  EXPECT_EQ(Value(words, "job.master_port"), "1234");
  EXPECT_EQ(Value(words, "launcher.options.master_addr"), "10.0.0.1");
  EXPECT_EQ(Value(words, "launcher.options.run_id"), "none");
  EXPECT_EQ(Value({"--standalone", "--local-addr", "lo", "x"}, "launcher.options.master_addr"), "lo");
  EXPECT_EQ(Value({"--master-port", "1", "--local-addr", "lo", "x"}, "launcher.options.master_addr"),
            "127.0.0.1")
      << "static has its address from the endpoint";
}

TEST_F(TranslateTest, KeepsLogsWhereTorchrunDoes) {
  EXPECT_EQ(Value({"--log-dir", "logs", "--rdzv-id", "j", "--rdzv-backend", "c10d", "x"}, "logs.dir"),
            "logs/j_r");
  EXPECT_EQ(Value({"--log-dir", "/dev/null", "x"}, "logs.dir"), "/tmp/torchelastic_r/uuid_r");
  EXPECT_EQ(Value({"--log-dir", "/dev/null", "x"}, "launcher.options.error_files"), "none");
  EXPECT_FALSE(Run({"--log-dir", "/dev/null", "x"})->keeps_logs);
}

TEST_F(TranslateTest, SpellsTheLocalRankAsTheScriptDoes) {
  const std::string key = "launcher.options.local_rank_argument";
  EXPECT_EQ(Value({"x.py"}, key), "");
  EXPECT_EQ(Value({"x.py"}, key, Program::kLaunch), "--local-rank");
  here_.script_text = "add_argument('--local_rank')";
  EXPECT_EQ(Value({"x.py"}, key, Program::kLaunch), "--local_rank");
  here_.script_text = "add_argument('--local_rank', '--local-rank')";
  EXPECT_EQ(Value({"x.py"}, key, Program::kLaunch), "--local-rank");
  EXPECT_EQ(Value({"--use-env", "x.py"}, key, Program::kLaunch), "");
}

TEST_F(TranslateTest, RefusesByNameWhatItCannotServe) {
  EXPECT_THAT(Refusal({"--logs-specs", "mine", "x"}), HasSubstr("--logs-specs=mine: "));
  EXPECT_THAT(Refusal({"--numa-binding", "chiplet", "x"}),
              HasSubstr("--numa-binding=chiplet: expected node"));
  EXPECT_THAT(Refusal({"--event-log-handler", "mine", "x"}), HasSubstr("--event-log-handler=mine: "));
}

TEST_F(TranslateTest, TakesTorchrunsOwnNamesOfHandlersAndBindings) {
  EXPECT_THAT(Run({"--logs-specs=default", "--event-log-handler=dynamic_rendezvous", "x"})->notes, IsEmpty());
  EXPECT_THAT(Run({"--event-log-handler=console", "x"})->notes, ElementsAre(HasSubstr("verdict.json")));
  EXPECT_EQ(Value({"x"}, "job.bind"), "");
  for (const auto& [mode, policy] :
       {std::pair{"node", "per-numa"}, std::pair{"socket", "per-socket"}, std::pair{"exclusive", "compact"},
        std::pair{"core-complex", "compact"}}) {
    EXPECT_EQ(Value({"--numa-binding", mode, "x"}, "job.bind"), policy);
  }
  EXPECT_EQ(place_, "--numa-binding");
}

TEST_F(TranslateTest, SaysWhatOneNodeIgnores) {
  EXPECT_THAT(Run({"--node-rank", "1", "--master-addr", "node0", "x"})->notes,
              ElementsAre(AllOf(HasSubstr("--node-rank=1, --master-addr=node0 are ignored, as by torchrun"),
                                HasSubstr("add --nnodes N"))));
  EXPECT_THAT(Run({"--nnodes", "1", "--node-rank", "1", "x"})->notes,
              ElementsAre(HasSubstr("--node-rank=1 is ignored, as by torchrun: --nnodes is 1")));
  EXPECT_THAT(Run({"--rdzv-backend", "c10d", "--rdzv-endpoint", "node0:29400", "x"})->notes,
              ElementsAre(HasSubstr("--rdzv-endpoint=node0:29400 is ignored")));
  for (const Words& words : {Words{"--master-addr", "localhost", "x"},
                             {"--nnodes=1", "--node-rank=0", "--master-addr=node0", "x"},
                             {"--standalone", "--master-addr", "node0", "x"},
                             {"--master-addr", "node0", "--master-port", "1234", "x"},
                             {"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "x"}}) {
    EXPECT_THAT(Run(words)->notes, IsEmpty()) << words[0];
  }
}

TEST_F(TranslateTest, SaysThatTheMasterOfOneNodeIsElsewhere) {
  here_.leads_here = [](const std::string& host) { return host == "here"; };
  here_.addresses = {"192.0.2.1", "2001:db8::1"};
  EXPECT_THAT(
      Run({"--master-addr", "node0", "--master-port", "1234", "x"})->notes,
      ElementsAre(AllOf(HasSubstr("--master-addr=node0 does not lead to this host (192.0.2.1, 2001:db8::1)"),
                        HasSubstr("--standalone"), HasSubstr("--nnodes N"))));
  EXPECT_THAT(Run({"--rdzv-endpoint", "node0:1234", "x"})->notes,
              ElementsAre(HasSubstr("--rdzv-endpoint=node0 does not lead to this host")));
  for (const Words& words :
       {Words{"--master-addr", "here", "--master-port", "1234", "x"},
        {"--nnodes", "2", "--master-addr", "node0", "--master-port", "1234", "x"},
        {"--rdzv-backend", "c10d", "--rdzv-endpoint", "node0:1234", "--nnodes", "1", "x"}}) {
    EXPECT_THAT(Run(words)->notes, IsEmpty()) << words[0];
  }
}

TEST_F(TranslateTest, NotesWhatIsDifferent) {
  EXPECT_THAT(Run({"x"})->notes, IsEmpty());
  EXPECT_THAT(Run({"--signals-to-handle", "SIGTERM,SIGUSR1,SIGFOO", "x"})->notes,
              ElementsAre(HasSubstr("SIGUSR1 is forwarded"), HasSubstr("SIGFOO is not forwarded")));
  EXPECT_THAT(Run({"--rdzv-backend", "c10d", "--node-rank", "3", "x"})->notes,
              ElementsAre(HasSubstr("--node-rank=3")));
  here_.environment = {{"TORCHELASTIC_ENABLE_FILE_TIMER", "1"}, {"TORCHELASTIC_HEALTH_CHECK_PORT", "1"}};
  EXPECT_EQ(Run({"x"})->notes.size(), 2u);
}

TEST_F(TranslateTest, TellsVariablesThatTorchrunDoesNotRead) {
  here_.environment = {{"PET_NPROC_PER_NOD", "2"}, {"PET_NNODES", "1"}, {"PETS", "3"}};
  EXPECT_THAT(Run({"x"})->notes,
              ElementsAre("PET_NPROC_PER_NOD is ignored: torchrun has no such option; did you mean "
                          "PET_NPROC_PER_NODE?"));
}

}  // namespace
}  // namespace dtrun::torchrun
