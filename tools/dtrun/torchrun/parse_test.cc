#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::torchrun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

Arguments Good(const Words& words, const Environment& environment = {},
               Program program = Program::kTorchrun) {
  const auto parsed = Parse(program, words, environment);
  EXPECT_TRUE(parsed.ok()) << parsed.error().text;
  return parsed.ok() ? parsed->arguments : Arguments{};
}

std::string ParseError(const Words& words, const Environment& environment = {},
                       Program program = Program::kTorchrun) {
  const auto parsed = Parse(program, words, environment);
  EXPECT_FALSE(parsed.ok());
  return parsed.ok() ? "" : parsed.error().text;
}

TEST(Parse, HasTorchrunsDefaults) {
  const Arguments it = Good({"train.py"});
  EXPECT_EQ(it.min_nodes, 1);
  EXPECT_EQ(it.max_nodes, 1);
  EXPECT_EQ(it.nproc_per_node, "1");
  EXPECT_EQ(it.rdzv_backend, "static");
  EXPECT_EQ(it.rdzv_id, "none");
  EXPECT_EQ(it.master_addr, "127.0.0.1");
  EXPECT_EQ(it.master_port, std::nullopt);
  EXPECT_EQ(it.max_restarts, 0);
  EXPECT_EQ(it.role, "default");
  EXPECT_TRUE(it.use_env);
  EXPECT_FALSE(it.standalone || it.module || it.no_python || it.run_path || it.virtual_local_rank);
  EXPECT_EQ(it.redirects.For(0), 0);
  EXPECT_THAT(it.local_ranks_filter, IsEmpty());
  EXPECT_TRUE(it.origins.empty());
}

TEST(Parse, TakesEveryOption) {
  const Arguments it = Good({"--nnodes=1:3",
                             "--nproc-per-node",
                             "4",
                             "--rdzv-backend",
                             "c10d",
                             "--rdzv-endpoint",
                             "h:1",
                             "--rdzv-id",
                             "j",
                             "--rdzv-conf",
                             "a=1",
                             "--standalone",
                             "--max-restarts",
                             "2",
                             "--monitor-interval",
                             "0.5",
                             "--start-method",
                             "fork",
                             "--event-log-handler",
                             "null",
                             "--role",
                             "r",
                             "-m",
                             "--no-python",
                             "--run-path",
                             "--log-dir",
                             "/l",
                             "-r",
                             "1",
                             "-t",
                             "2",
                             "--local-ranks-filter",
                             "0,1",
                             "--duplicate-stdout-filters",
                             "a,b",
                             "--duplicate-stderr-filters",
                             "c",
                             "--log-line-prefix-template",
                             "${rank}",
                             "--node-rank",
                             "1",
                             "--master-addr",
                             "m",
                             "--master-port",
                             "5",
                             "--local-addr",
                             "l",
                             "--logs-specs",
                             "s",
                             "--numa-binding",
                             "node",
                             "--signals-to-handle",
                             "SIGTERM",
                             "--shutdown-timeout",
                             "7",
                             "--virtual-local-rank",
                             "x.py"});
  EXPECT_EQ(it.max_nodes, 3);
  EXPECT_EQ(it.nproc_per_node, "4");
  EXPECT_EQ(it.rdzv_endpoint, "h:1");
  EXPECT_EQ(it.max_restarts, 2);
  EXPECT_TRUE(it.standalone && it.module && it.no_python && it.run_path && it.virtual_local_rank);
  EXPECT_EQ(it.redirects.For(0), kStdout);
  EXPECT_EQ(it.tee.For(0), kStderr);
  EXPECT_THAT(it.local_ranks_filter, ElementsAre(0, 1));
  EXPECT_THAT(it.duplicate_stdout_filters, ElementsAre("a", "b"));
  EXPECT_EQ(it.log_line_prefix_template, "${rank}");
  EXPECT_EQ(it.master_port, 5);
  EXPECT_EQ(it.shutdown_timeout, 7);
  EXPECT_EQ(it.training_script, "x.py");
  EXPECT_EQ(it.origins.size(), Options(Program::kTorchrun).size() - 1) << "all but --help";
  EXPECT_EQ(it.origins.at("nproc_per_node").place, "--nproc-per-node");
}

TEST(Parse, TakesUnderscoresUniquePrefixesAndShortForms) {
  EXPECT_EQ(Good({"--nproc_per_node", "2", "x"}).nproc_per_node, "2");
  EXPECT_EQ(Good({"--nproc=2", "x"}).nproc_per_node, "2");
  EXPECT_EQ(Good({"--redirect", "3", "x"}).redirects.For(1), 3);
  EXPECT_EQ(Good({"--max", "2", "x"}).max_restarts, 2) << "two spellings of one option are no ambiguity";
  for (const Words& words :
       {Words{"-r3", "x"}, Words{"-r=3", "x"}, Words{"-r", "3", "x"}, Words{"-mr3", "x"}}) {
    EXPECT_EQ(Good(words).redirects.For(0), 3) << words[0];
  }
  EXPECT_TRUE(Good({"-mr3", "x"}).module);
  EXPECT_EQ(Good({"--role", "", "x"}).role, "");
  EXPECT_EQ(Good({"--role=", "x"}).role, "");
}

TEST(Parse, LeavesWhatFollowsTheScriptAlone) {
  const Arguments it = Good({"--nnodes", "1", "train.py", "--nnodes", "7", "-h", "--", "--d", "--bogus"});
  EXPECT_EQ(it.training_script, "train.py");
  EXPECT_THAT(it.training_script_args, ElementsAre("--nnodes", "7", "-h", "--", "--d", "--bogus"));
  EXPECT_EQ(it.max_nodes, 1);
  EXPECT_EQ(Good({"--", "--odd-name"}).training_script, "--odd-name");
  EXPECT_EQ(Good({"-"}).training_script, "-");
}

TEST(Parse, ReadsDefaultsFromTheEnvironment) {
  const Environment environment = {
      {"PET_NPROC_PER_NODE", "3"}, {"PET_STANDALONE", "1"},      {"PET_MODULE", "0"}, {"PET_TEE", "0:3"},
      {"PET_LOGS_SPECS", "s"},     {"PET_NUMA_BINDING", "node"}, {"PET_HELP", "1"},   {"PET_USE_ENV", "1"}};
  const Arguments it = Good({"x"}, environment);
  EXPECT_EQ(it.nproc_per_node, "3");
  EXPECT_EQ(it.origins.at("nproc_per_node").place, "PET_NPROC_PER_NODE");
  EXPECT_EQ(it.origins.at("nproc_per_node").kind, DTRUN_ORIGIN_ENVIRONMENT);
  EXPECT_TRUE(it.standalone);
  EXPECT_FALSE(it.module);
  EXPECT_EQ(it.tee.For(0), 3);
  EXPECT_EQ(it.logs_specs, std::nullopt) << "has no variable";
  EXPECT_EQ(it.numa_binding, std::nullopt) << "has no variable";
  EXPECT_EQ(Good({"--nproc-per-node", "2", "x"}, environment).nproc_per_node, "2") << "the command line wins";
  EXPECT_EQ(Good({"x"}, {{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "<$rank>"}}).log_line_prefix_template,
            "<$rank>");
}

TEST(Parse, HoldsStartMethodToItsChoicesOnTheCommandLineOnly) {
  EXPECT_THAT(ParseError({"--start-method", "thread", "x"}), HasSubstr("expected spawn, fork or forkserver"));
  EXPECT_EQ(Good({"x"}, {{"PET_START_METHOD", "thread"}}).start_method, "thread");
}

TEST(Parse, SaysWhatIsWrong) {
  const struct {
    Words words;
    const char* text;
  } cases[] = {
      {{}, "the following arguments are required: training_script"},
      {{"--nnodes"}, "argument --nnodes: expected one argument"},
      {{"--role", "--standalone", "x"}, "argument --role: expected one argument"},
      {{"--bogus", "x"}, "unrecognized arguments: --bogus; dtrun torchrun --help lists torchrun's"},
      {{"-n", "2", "x"}, "unrecognized arguments: -n; torchrun has --nproc-per-node"},
      {{"-np2", "x"}, "dtrun's -n is without torchrun: dtrun -n 2 train.py"},
      {{"--ranks", "2", "x"}, "torchrun has --nproc-per-node"},
      {{"--nproc-per-nod3", "2", "x"}, "did you mean --nproc-per-node?"},
      {{"--torch-backend", "dtrun", "x"}, "start it with the variable DTRUN_CONFIG_BACKEND_TORCH=dtrun"},
      {{"--set", "backend.name=gloo", "x"},
       "are variables there, DTRUN_CONFIG_BACKEND_NAME=gloo dtrun torchrun ..."},
      {{"--set", "x"}, "torchrun has no --set"},
      {{"-x", "x"}, "unrecognized arguments: -x"},
      {{"--rdzv", "1", "x"},
       "ambiguous option: --rdzv could match --rdzv-backend, --rdzv-endpoint, --rdzv-id, --rdzv-conf"},
      {{"--max-restarts", "x", "f"}, "argument --max-restarts: expected an integer; found 'x'"},
      {{"--max-restarts", "-1", "f"}, "argument --max-restarts: expected at least 0; found -1"},
      {{"--master-port", "70000", "f"}, "argument --master-port: expected 0 to 65535; found 70000"},
      {{"--shutdown-timeout", "-3", "f"}, "found -3"},
      {{"--standalone=1", "f"}, "argument --standalone: expected no value; found '1'"},
      {{"-m=1", "f"}, "argument -m: expected no value; found '1'"},
      {{"-r", "9", "f"}, "argument -r: expected 0 (none)"},
      {{"--nnodes", "1:2:3", "f"}, "argument --nnodes: expected N or MIN:MAX; found '1:2:3'"},
      {{"-m", "--no-python", "f"}, "not together with --no-python"},
      {{""}, "expected a script; found ''"},
  };
  for (const auto& c : cases) EXPECT_THAT(ParseError(c.words), HasSubstr(c.text));
  EXPECT_THAT(ParseError({"x"}, {{"PET_STANDALONE", "true"}}),
              HasSubstr("PET_STANDALONE: expected an integer"));
  EXPECT_THAT(ParseError({"x"}, {{"PET_MAX_RESTARTS", "x"}}),
              HasSubstr("PET_MAX_RESTARTS: expected an integer"));
  EXPECT_EQ(Good({"--max-restarts", "1", "x"}, {{"PET_MAX_RESTARTS", "x"}}).max_restarts, 1)
      << "a variable that is not needed is not looked at";
}

TEST(Parse, ShowsHelpWhateverElseIsAsked) {
  for (const char* word : {"-h", "--help", "--he"}) {
    EXPECT_TRUE(Parse(Program::kTorchrun, {word, "--bogus"}, {})->help) << word;
  }
  for (const Option& option : Options(Program::kLaunch)) {
    EXPECT_THAT(Help(Program::kLaunch), HasSubstr(option.Spelling()));
  }
}

TEST(Parse, KnowsTheOlderLauncher) {
  EXPECT_FALSE(Good({"x.py"}, {}, Program::kLaunch).use_env);
  EXPECT_TRUE(Good({"--use_env", "x.py"}, {}, Program::kLaunch).use_env);
  EXPECT_THAT(ParseError({"--use-env", "x.py"}), HasSubstr("unrecognized arguments: --use-env"));
  EXPECT_THAT(ParseError({"--no-python", "x"}, {}, Program::kLaunch), HasSubstr("needs --use-env too"));
}

}  // namespace
}  // namespace dtrun::torchrun
