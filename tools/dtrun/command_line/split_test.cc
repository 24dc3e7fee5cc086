#include "tools/dtrun/command_line/split.h"

#include <gmock/gmock.h>

#include "tools/dtrun/command_line/testing.h"

namespace dtrun::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(SplitTest, TheFirstWordThatIsNoOptionIsTheProgram) {
  const SplitWords split = Good({"-n", "4", "--set", "a.b=c", "python3", "train.py", "-n", "9", "--", "x"});
  EXPECT_THAT(split.words, ElementsAre("-n", "4", "--set", "a.b=c"));
  EXPECT_THAT(split.command, ElementsAre("python3", "train.py", "-n", "9", "--", "x"));
  EXPECT_EQ(split.verb, "");
  EXPECT_THAT(Good({"plan", "--json", "-n", "2", "train.py", "--json"}).command,
              ElementsAre("train.py", "--json"));
}

TEST_F(SplitTest, TwoDashesEndTheOptions) {
  const SplitWords split = Good({"-n4", "--", "plan", "--", "x"});
  EXPECT_THAT(split.words, ElementsAre("-n", "4"));
  EXPECT_THAT(split.command, ElementsAre("plan", "--", "x"));
  EXPECT_THAT(Good({"plan", "--"}).command, IsEmpty());
}

TEST_F(SplitTest, ATomlFileIsTheConfig) {
  const SplitWords split = Good({"job.toml", "--set", "a.b=c", "python3", "x.toml"});
  EXPECT_THAT(split.words, ElementsAre("--config", "job.toml", "--set", "a.b=c"));
  EXPECT_THAT(split.command, ElementsAre("python3", "x.toml"));
  EXPECT_THAT(Good({"plan", "job.toml"}).words, ElementsAre("plan", "--config", "job.toml"));
  EXPECT_THAT(Good({"config", "check", "job.toml"}).words, ElementsAre("config", "check", "job.toml"));
  EXPECT_THAT(Refused({"-c", "a.toml", "b.toml"}), HasSubstr("two configs, 'a.toml' and 'b.toml'"));
}

TEST_F(SplitTest, AVerbComesBeforeAProgramOfItsName) {
  EXPECT_EQ(Good({"plan"}).verb, "plan");
  EXPECT_THAT(Good({"./plan"}).command, ElementsAre("./plan"));
  EXPECT_THAT(Refused({"env", "A=1"}), HasSubstr("to run the program env, type: dtrun -- env A=1"));
}

TEST_F(SplitTest, ASlipOfAVerbIsTold) {
  EXPECT_EQ(Refused({"doctr"}), "'doctr' is neither a verb nor a program; did you mean 'dtrun doctor'?");
  EXPECT_EQ(Refused({"hepl"}), "'hepl' is neither a verb nor a program; did you mean 'dtrun help'?");
  EXPECT_THAT(Good({"helo.py"}).command, ElementsAre("helo.py")) << "a file that is not there, and no verb";
  EXPECT_THAT(Good({"rum"}).command, ElementsAre("rum")) << "there is such a program";
  EXPECT_THAT(Good({"nothing-like-it"}).command, ElementsAre("nothing-like-it"));
  EXPECT_THAT(Refused({"config", "chekc", "x"}), HasSubstr("has no verb 'chekc'; did you mean 'check'?"));
}

TEST_F(SplitTest, ACommandInOneWordIsToldToBeSeveral) {
  EXPECT_THAT(Refused({"-n", "2", "python3 train.py"}),
              HasSubstr("as separate words: dtrun -n 2 python3 train.py"));
  EXPECT_THAT(Refused({"-n", "2", "echo hi; echo there"}),
              HasSubstr(": dtrun -n 2 sh -c 'echo hi; echo there'"));
}

TEST_F(SplitTest, VariablesBeforeTheProgramAreOptions) {
  for (const Typed& typed : {Typed{"-n", "2", "A=1", "B=x y", "python3", "train.py"},
                             Typed{"-n", "2", "env", "A=1", "B=x y", "python3", "train.py"}}) {
    EXPECT_THAT(Refused(typed),
                HasSubstr(": dtrun -n 2 --set job.env.A=1 --set 'job.env.B=x y' python3 train.py"));
  }
}

TEST_F(SplitTest, SecretsAreNotRepeated) {
  EXPECT_THAT(Refused({"DB_PASSWORD=sekret1", "x"}),
              AllOf(HasSubstr("job.env.DB_PASSWORD=(secret)"), Not(HasSubstr("sekret1"))));
  for (const Typed& typed : {
           Typed{"--set", "job.env.API_TOKEN=sekret1", "python3 train.py"},
           Typed{"python3 train.py --api-key sekret1"},
           Typed{"--set", "job.env.API_TOKEN=sekret1 two", "mpirun", "-np", "2", "x"},
           Typed{"mpirun", "-x", "API_TOKEN=sekret1", "-np", "2", "x"},
           Typed{"mpirun", "-np", "2", "--", "x", "--password=sekret1"},
           Typed{"torchrun", "--nproc-per-node", "2", "x", "--password", "sekret1"},
           Typed{"--set", "job.env.API_TOKEN=sekret1", "-m", "train"},
           Typed{"-m", "train", "--password", "sekret1"},
           Typed{"--set", "job.env.API_TOKEN", "sekret1", "x"},
           Typed{"--set", "job.env.API_TOKEN=sekret1", "a.py", ":", "-n", "1", "b.py"},
           Typed{"--set", "job.env.API_TOKEN=sekret1", "a.py", ":", "--password", "sekret1"},
           Typed{"env", "API_TOKEN=sekret1"},
           Typed{"-n", "API_TOKEN=sekret1", "x"},
           Typed{"--bind-to", "API_TOKEN=sekret1", "x"},
       }) {
    EXPECT_THAT(Refused(typed), Not(HasSubstr("sekret1")));
  }
}

TEST_F(SplitTest, WhatWasAssumedHasNoSecretsEither) {
  const SplitWords split = Good({"-x", "API_TOKEN=sekret1", "-genv", "DB_PASSWORD", "sekret2", "x"});
  EXPECT_THAT(split.words,
              ElementsAre("--set", "job.env.API_TOKEN=sekret1", "--set", "job.env.DB_PASSWORD=sekret2"));
  EXPECT_THAT(split.assumed, ElementsAre("-x is read as --set job.env.API_TOKEN=(secret)",
                                         "-genv is read as --set job.env.DB_PASSWORD=(secret)"));
}

TEST_F(SplitTest, AModuleNeedsTheInterpreter) {
  EXPECT_EQ(Refused({"-n", "2", "-m", "train", "--lr", "1"}),
            "-m is a flag of torchrun, accelerate and deepspeed; write the interpreter\n  type: dtrun -n 2 "
            "python3 -m "
            "train --lr 1");
  EXPECT_THAT(Refused({"plan", "--module=train"}), HasSubstr("dtrun plan python3 -m train"));
  EXPECT_THAT(Refused({"--module=train", "--lr", "1"}), HasSubstr("dtrun python3 -m train --lr 1"));
  EXPECT_THAT(Refused({"-mtrain", "--lr", "1"}), HasSubstr("dtrun python3 -m train --lr 1"));
  EXPECT_THAT(Refused({"-m"}), HasSubstr("dtrun python3 -m MODULE"));
}

TEST_F(SplitTest, AProgramThatAnOptionTookIsNamed) {
  EXPECT_EQ(Good({"-H", "train.py"}).swallowed, "'train.py' was taken as the value of -H");
  EXPECT_EQ(Good({"-host", "rum"}).swallowed, "'rum' was taken as the value of -host");
  EXPECT_EQ(Good({"-n", "2"}).swallowed, "");
  EXPECT_EQ(Good({"-H", "train.py", "rum"}).swallowed, "");
}

TEST_F(SplitTest, AProgramIsNoConfigAndNoValueIsEmpty) {
  EXPECT_THAT(Refused({"-c", "train.py", "--lr", "1"}),
              HasSubstr("goes after dtrun's options: dtrun -n 2 python3 train.py"));
  EXPECT_THAT(Refused({"--processes-per-host", "", "rum"}),
              HasSubstr("--processes-per-host is empty; write"));
  EXPECT_THAT(Refused({"--set", "", "rum"}), HasSubstr("--set is empty; write --set job.grace=5s"));
}

TEST_F(SplitTest, OptionsMayStandAloneTogetherOrWithTheirValue) {
  EXPECT_THAT(Good({"-qv", "-n=4", "-Ha,b", "--set=a.b=c", "x"}).words,
              ElementsAre("-q", "-v", "-n", "4", "-H", "a,b", "--set", "a.b=c"));
  EXPECT_THAT(Refused({"-n", "1", "--np", "2", "x"}), HasSubstr("-n and --np are the same option"));
  EXPECT_EQ(Refused({"-n", "1", "-n", "2", "x"}), "-n is given twice; leave one of them out");
  EXPECT_THAT(Good({"-H", "a", "-N", "2", "x"}).words, ElementsAre("-H", "a", "-N", "2"));
  EXPECT_EQ(Refused({"-n"}), "-n needs a value: -n N");
  EXPECT_EQ(Refused({"--quiet=yes"}), "--quiet takes no value; write --quiet alone");
  EXPECT_THAT(Refused({"--set", "a.b", "4"}), HasSubstr("write --set a.b=4"));
}

TEST_F(SplitTest, UnknownOptionsHaveTheNearestOrSayWhereTheProgramsGo) {
  EXPECT_EQ(Refused({"--confg", "x"}), "unknown option '--confg'; did you mean '--config'?");
  EXPECT_EQ(Refused({"--nproc-per-nod", "2", "train.py"}),
            "unknown option '--nproc-per-nod'; did you mean '--nproc-per-node'?");
  EXPECT_THAT(Refused({"--epochs", "5", "train.py"}),
              HasSubstr("options of the program go after it: dtrun PROGRAM --epochs"));
  EXPECT_THAT(Refused({"--json"}), HasSubstr("belongs to the verb plan: dtrun plan --json"));
  EXPECT_EQ(Refused({"plan", "--extra", "x"}),
            "unknown option '--extra' of 'dtrun plan'; it goes before the verb: dtrun --extra plan");
  EXPECT_THAT(Refused({"--socket", "x"}), Not(HasSubstr("agent"))) << "a hidden verb";
  EXPECT_THAT(Refused({"job.toml", "--epochs", "5"}), HasSubstr("job.command of 'job.toml'"));
  EXPECT_THAT(Refused({"config", "check", "-s"}), HasSubstr("; dtrun config check --help lists them"));
  EXPECT_THAT(Refused({"env", "-a"}), HasSubstr("unknown option '-a' of 'dtrun env'; did you mean --as?"));
  EXPECT_THAT(Refused({"-z"}), HasSubstr("unknown option '-z'"));
  EXPECT_THAT(Refused({"bench", "--np", "2"}), HasSubstr("unknown option '--np' of 'dtrun bench'"));
}

TEST_F(SplitTest, FlagsOfOtherLaunchersWorkWhereTheyMeanTheSame) {
  const SplitWords split = Good({"-np", "4", "--nproc_per_node=2", "-host", "a,b", "x"});
  EXPECT_THAT(split.words, ElementsAre("--ranks", "4", "--processes-per-host", "2", "--hosts", "a,b"));
  EXPECT_THAT(split.assumed,
              ElementsAre("-np is read as --ranks", "--nproc_per_node is read as --processes-per-host",
                          "-host is read as --hosts"));
  EXPECT_THAT(Refused({"--nnodes=2:4", "train.py"}),
              AllOf(HasSubstr("--nnodes is a flag of torchrun"), HasSubstr("dtrun torchrun")));
  EXPECT_EQ(Good({"--nnodes=1", "-H", "a,b", "x"}).spelled.at("--hosts 1"), "--nnodes");
  EXPECT_THAT(Refused({"--map-by", "node", "train.py"}), HasSubstr("--map-by is a flag of mpirun"));
  for (const Typed& typed : {Typed{"-r", "3", "train.py"}, Typed{"-r3", "train.py"}}) {
    EXPECT_THAT(Refused(typed), HasSubstr("-r is a flag of torchrun; 'dtrun torchrun' takes"));
  }
}

TEST_F(SplitTest, FlagsOfOtherLaunchersAreSettingsOrHaveNoEffect) {
  const SplitWords split =
      Good({"--standalone", "--nnodes=1", "--rdzv_id", "7", "--max-restarts=3", "-x", "A=1", "x"});
  EXPECT_THAT(split.words, ElementsAre("-N", "1", "--set", "restart.max=3", "--set", "job.env.A=1"));
  EXPECT_THAT(split.command, ElementsAre("x"));
  EXPECT_THAT(Good({"-np2", "-ppn4", "-xA=1", "x"}).words,
              ElementsAre("--ranks", "2", "--processes-per-host", "4", "--set", "job.env.A=1"));
  EXPECT_THAT(Good({"-x", "DTRUN_TEST_IS_NOT_SET", "x"}).warned,
              ElementsAre(HasSubstr("-x DTRUN_TEST_IS_NOT_SET: this variable is not set here")));
  EXPECT_EQ(Refused({"--standalone=yes", "x"}), "--standalone takes no value; write --standalone alone");
  EXPECT_EQ(Refused({"--max-restarts"}), "--max-restarts needs a value");
  EXPECT_THAT(Refused({"config", "--standalone"}), HasSubstr("unknown option '--standalone'"));
}

TEST_F(SplitTest, RemembersHowAnOptionWasTyped) {
  const auto spelled = Good({"-np", "4", "--max-restarts=2", "-H", "a,b", "--set", "a.b=c", "x"}).spelled;
  EXPECT_THAT(spelled,
              ::testing::UnorderedElementsAre(std::pair("--ranks 4", "-np"), std::pair("--hosts a,b", "-H"),
                                              std::pair("--set restart.max=2", "--max-restarts")));
}

TEST_F(SplitTest, AValueThatLooksLikeAnOptionIsNone) {
  EXPECT_EQ(Refused({"--network-interface", "-n", "2", "x"}),
            "--network-interface needs a value, and '-n' looks like an option; if it is the value: "
            "--network-interface=-n");
  EXPECT_THAT(Refused({"--hosts", "-oProxyCommand=touch /tmp/x"}),
              ::testing::EndsWith("if it is the value: '--hosts=-oProxyCommand=touch /tmp/x'"));
  EXPECT_THAT(Refused({"--hostfile", "--hosts", "a", "x"}),
              HasSubstr("--hostfile needs a value, and '--hosts'"));
  EXPECT_THAT(Refused({"--nproc", "-n", "2", "x"}), HasSubstr("write --processes-per-host VALUE; "));
  EXPECT_THAT(Good({"--hostfile=-n", "x"}).words, ElementsAre("--hostfile", "-n"));
}

TEST_F(SplitTest, AWordForStartingIsLeftOut) {
  EXPECT_THAT(Refused({"launch", "--num_processes", "2", "train.py"}),
              HasSubstr("; leave it out: dtrun --num_processes 2 train.py"));
  EXPECT_THAT(Refused({"-q", "start", "rum", "-n", "1"}), HasSubstr("; leave it out: dtrun -q rum -n 1"));
  EXPECT_THAT(Refused({"submit"}), HasSubstr("; leave it out: dtrun -n 4 train.py"));
  EXPECT_THAT(Refused({"launch", "--epochs", "5", "x"}),
              HasSubstr("leave it out; then: unknown option '--epochs'"));
}

TEST_F(SplitTest, SeveralProgramsAreRefused) {
  EXPECT_THAT(Refused({"-np", "1", "a.py", ":", "-np", "1", "b.py"}),
              AllOf(HasSubstr("after ':' mpirun takes another program"),
                    HasSubstr("to pass ':' on: dtrun -np 1 -- a.py : -np 1 b.py")));
  EXPECT_THAT(Good({"a.py", ":", "x"}).command, ElementsAre("a.py", ":", "x"));
  EXPECT_THAT(Good({"--", "a.py", ":", "-x"}).command, ElementsAre("a.py", ":", "-x"));
}

TEST_F(SplitTest, WordsThatReadLikeVerbs) {
  EXPECT_EQ(Refused({"version"}), "'version' is neither a verb nor a program; write dtrun --version");
  EXPECT_THAT(Refused({"check", "job.toml"}), HasSubstr("dtrun config check JOB.toml"));
  EXPECT_THAT(Refused({"kill", "-9", "7"}), HasSubstr("dtrun stop JOB"));
  EXPECT_THAT(Good({"./kill"}).command, ElementsAre("./kill"));
  EXPECT_THAT(Good({"--", "kill"}).command, ElementsAre("kill"));
  grammar_.known = [](const std::string& name) { return name == "kill" || name == "logs"; };
  EXPECT_THAT(Refused({"kill", "7"}), HasSubstr("'kill' is not a verb of dtrun"));
  EXPECT_THAT(Good({"logs"}).command, ElementsAre("logs")) << "a program of PATH that people may mean";
  grammar_.known = [](const std::string& name) { return name.ends_with("kill"); };
  EXPECT_THAT(Good({"kill", "7"}).command, ElementsAre("kill", "7")) << "a file of the folder";
}

TEST_F(SplitTest, WhatIsNoNumberOfRanksAndNoConfig) {
  EXPECT_THAT(Refused({"-n", "x", "a"}), HasSubstr("-n 'x': expected a number of ranks"));
  EXPECT_THAT(Refused({"-np", "-1", "a"}), HasSubstr("-np '-1': expected a number of ranks"));
  EXPECT_THAT(Good({"-n", "gpu", "a"}).words, ElementsAre("-n", "gpu"));
  EXPECT_THAT(Refused({"job.yaml"}), HasSubstr("dtrun's configs are TOML"));
  EXPECT_EQ(Refused({"--set", "job.grace", "train.py"}),
            "--set takes a key and its value in one word; write --set job.grace=VALUE");
}

TEST_F(SplitTest, ARangeOfHostsIsNoHost) {
  for (const Typed& typed :
       {Typed{"-N", "1-2", "x"}, Typed{"-N2:4", "-H", "a,b", "x"}, Typed{"-N=2,4", "x"}}) {
    EXPECT_THAT(Refused(typed), AllOf(HasSubstr(": expected a number of hosts; "), HasSubstr("--hosts 2"),
                                      HasSubstr("cluster.min_hosts=N")));
  }
  EXPECT_THAT(Good({"-N", "2:2", "-H", "a,b", "x"}).words, ElementsAre("-N", "2", "-H", "a,b"));
  EXPECT_THAT(Refused({"srun", "-N2-4", "x"}),
              HasSubstr("type dtrun in its place\n  -N 2-4: expected a number of hosts"));
  EXPECT_THAT(Good({"-N", "a,b:2", "x"}).words, ElementsAre("-N", "a,b:2"));
}

TEST_F(SplitTest, AFileIsNoHost) {
  EXPECT_THAT(Good({"-H", "hf", "x"}).warned,
              ElementsAre("-H hf names a host, and 'hf' is a file here; for a hostfile: --hostfile hf"));
  EXPECT_THAT(Good({"-H", "a", "x"}).warned, IsEmpty());
  EXPECT_THAT(Refused({"deepspeed", "-H", "hf", "--num_gpus", "2", "t.py"}),
              HasSubstr("type: dtrun --hostfile hf --processes-per-host 2 t.py\n"));
  EXPECT_THAT(Refused({"-H", "a", "deepspeed", "--num_gpus", "2", "t.py"}),
              HasSubstr("type: dtrun -H a --processes-per-host 2 t.py\n"));
}

TEST_F(SplitTest, ANumberIsAConfigOnlyWhereThereIsSuchAFile) {
  for (const Typed& typed : {Typed{"-c", "2", "-n", "2", "x"}, Typed{"-c2", "x"}}) {
    EXPECT_THAT(
        Refused(typed),
        AllOf(HasSubstr("-c 2: -c names a config here, and there is no file '2'"),
              HasSubstr("for srun's -c: write --set job.env.OMP_NUM_THREADS=2; --set job.bind=compact")));
  }
  EXPECT_THAT(Good({"--config", "2", "x"}).words, ElementsAre("--config", "2"));
  grammar_.known = [](const std::string& name) { return name == "./2"; };
  EXPECT_THAT(Good({"-c", "2", "x"}).words, ElementsAre("-c", "2"));
}

TEST_F(SplitTest, HelpRunsNothing) {
  EXPECT_THAT(Good({"help"}).words, ElementsAre("--help"));
  EXPECT_THAT(Good({"help", "config", "check"}).words, ElementsAre("config", "check", "--help"));
  EXPECT_THAT(Refused({"help", "rum"}), HasSubstr("has no verb 'rum'"));
  EXPECT_THAT(Refused({"help", "zzzz"}), HasSubstr("its verbs: plan, config, doctor, env, bench"));
}

TEST_F(SplitTest, WhatCli11RefusesIsOneLine) {
  try {
    app_.parse(Typed{"config"});
    FAIL();
  } catch (const CLI::ParseError& error) {
    EXPECT_EQ(Refusal(error, app_, "config"), "dtrun: 'dtrun config' needs a verb: check");
  }
  try {
    app_.parse(Typed{"check", "config"});
    FAIL();
  } catch (const CLI::ParseError& error) {
    EXPECT_EQ(Refusal(error, app_, "config check"),
              "dtrun: 'dtrun config check' needs FILE: a config; see dtrun config check --help");
  }
  try {
    app_.parse(Typed{"API_TOKEN=sekret1", "a.toml", "check", "config"});
    FAIL();
  } catch (const CLI::ParseError& error) {
    EXPECT_THAT(Refusal(error, app_, "config check"),
                AllOf(HasSubstr("'API_TOKEN=(secret)' is too much"), Not(HasSubstr("sekret1"))));
  }
}

TEST_F(SplitTest, AllFlagsThatItCannotTakeAreRefusedAtOnce) {
  EXPECT_EQ(Refused({"-v", "--map-by", "node", "--xml", "-np", "2", "--spawn-timeout=60", "--bind-to",
                     "l3cache", "--rankfile", "r f", "a.py", "--xml", "a b"}),
            "--map-by is a flag of mpirun; ranks fill one host after another, as by slot; ppr:N:node: use "
            "--processes-per-host N (there is no round-robin over hosts); --set job.bind=spread "
            "spreads the ranks "
            "of a host over its NUMA nodes\n"
            "  --xml is a flag of mpirun that dtrun does not read; leave it out; an option of the program "
            "goes after it\n"
            "  --spawn-timeout is a flag of mpirun; write --set cluster.join_timeout=60s\n"
            "  --bind-to is a flag of mpirun; dtrun does not read 'l3cache', only core, hwthread, numa, "
            "socket, package, "
            "none; else see: dtrun config explain job.bind\n"
            "  --rankfile is a flag of mpirun; name hosts and slots, --hosts a:2,b:4, which are filled in "
            "order; --set "
            "job.bind=compact or spread chooses processors\n"
            "  for mpirun's own mapping, add --set launcher.name=mpirun --set "
            "'launcher.options.arguments=[\"--map-by\",\"node\",\"--rankfile\",\"r f\"]'\n"
            "  type: dtrun -v -np 2 --set cluster.join_timeout=60s a.py --xml 'a b'");
  EXPECT_THAT(Refused({"plan", "job.toml", "--tv", "--hosts", "a"}),
              HasSubstr("\n  type: dtrun plan job.toml --hosts a"));
  EXPECT_THAT(Refused({"--tv", "--", "plan"}), HasSubstr("\n  type: dtrun -- plan"));
  EXPECT_THAT(Refused({"-n", "2", "--dry-run", "x"}), HasSubstr("\n  type: dtrun plan -n 2 x"));
  EXPECT_THAT(Refused({"plan", "--test-only", "x"}), HasSubstr("\n  type: dtrun plan x"));
  EXPECT_THAT(Refused({"--export=A=1,B=2", "x"}),
              HasSubstr("\n  type: dtrun --set job.env.A=1 --set job.env.B=2 x"));
  EXPECT_THAT(Refused({"--gpu-ids", "0,1", "--unset-env", "A", "x"}),
              HasSubstr("\n  type: CUDA_VISIBLE_DEVICES=0,1 env -u A dtrun x"));
  EXPECT_THAT(
      Refused({"--ssh-port", "2200", "--ssh-identity-file", "k", "x"}),
      HasSubstr("\n  type: dtrun --set 'cluster.remote_shell=[\"ssh\",\"-p\",\"2200\",\"-i\",\"k\"]' x"));
  EXPECT_THAT(Refused({"--multi-gpu", "--num-processes", "2", "x"}),
              HasSubstr("\n  type: dtrun --num-processes 2 x"));
  EXPECT_THAT(Refused({"--tv", "-n", "2"}), Not(HasSubstr("type:"))) << "there is no program";
  EXPECT_THAT(Refused({"--tv", "--epochs", "5", "x"}),
              AllOf(HasSubstr("--tv is a flag of mpirun"), HasSubstr("\n  unknown option '--epochs'")));
  EXPECT_THAT(Refused({"--tv", "-m", "train"}),
              HasSubstr("; write the interpreter\n  type: dtrun python3 -m train"));
  EXPECT_THAT(Refused({"--tv", "torchrun", "x"}),
              AllOf(HasSubstr("--tv is a flag of mpirun"), HasSubstr("; type: dtrun torchrun x")));
}

TEST_F(SplitTest, SrunsOutputFilesAreTheRunsFolder) {
  for (const char* flag : {"-o", "--output"})
    EXPECT_THAT(
        Refused({flag, "out.txt", "-n", "2", "train"}),
        AllOf(HasSubstr(std::string(flag) + " is a flag of srun that dtrun does not read; leave it out"),
              HasSubstr("; an option of the program goes after it")));
  EXPECT_THAT(Refused({"srun", "-o", "out", "train"}),
              AllOf(HasSubstr("-o is a flag of srun"), Not(HasSubstr("an option of the program"))));
}

}  // namespace
}  // namespace dtrun::cli
