#include "tools/dtrun/command_line/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/dtrun/command_line/refusal.h"

namespace dtrun::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Typed = std::vector<std::string>;

// A small dtrun: the job's flags at the root and at `plan`, which both take a program; `config check FILE`;
// `env`, which takes neither; `bench OPERATION`.
class SplitTest : public ::testing::Test {
 protected:
  SplitTest() {
    CLI::App* plan = app_.add_subcommand("plan", "");
    for (CLI::App* app : {&app_, plan}) {
      app->add_option("-c,--config", text_);
      app->add_option("-n,--np,--ranks", text_)->type_name("N");
      app->add_option("--processes-per-host", text_);
      app->add_option("--hostfile", text_);
      app->add_option("--torch-backend", text_);
      app->add_option("-N,-H,--hosts", texts_)->expected(1)->take_all();
      app->add_option("--set", texts_)->expected(1)->take_all();
      app->add_flag("-q,--quiet", flag_);
      app->add_flag("-v,--verbose", flag_);
    }
    app_.add_flag("--extra", flag_);
    CLI::App* show = app_.add_subcommand("show", "")->group("");  // no -q and -v of its own
    show->add_option("-n,--ranks", text_);
    show->add_option("-N,-H,--hosts", texts_)->expected(1)->take_all();
    show->add_option("--set", texts_)->expected(1)->take_all();
    plan->add_flag("--json", flag_);
    CLI::App* config = app_.add_subcommand("config", "");
    config->require_subcommand(1);
    config->add_subcommand("check", "")->add_option("FILE", text_, "a config")->required();
    app_.add_subcommand("doctor", "");
    app_.add_subcommand("env", "")->add_option("--as", text_);
    app_.add_subcommand("bench", "")->add_option("OPERATION", text_);
    app_.add_subcommand("agent", "")->group("")->add_option("--socket", text_);
    grammar_ = {&app_,
                {plan, show},
                [](const std::string& name) { return name == "rum"; },
                [](const std::string& name) { return name == "job.grace"; },
                [](const std::string& name) { return name == "hf"; }};
  }

  SplitWords Good(const Typed& words) {
    auto split = SplitCommandLine(grammar_, words);
    EXPECT_TRUE(split.ok()) << split.error().text;
    return split.ok() ? *std::move(split) : SplitWords{};
  }
  std::string Refused(const Typed& words) {
    const auto split = SplitCommandLine(grammar_, words);
    EXPECT_FALSE(split.ok());
    return split.ok() ? "" : split.error().text;
  }

  CLI::App app_{"", "dtrun"};
  Grammar grammar_;
  std::string text_;
  std::vector<std::string> texts_;
  bool flag_ = false;
};

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
            "-m is a flag of torchrun, accelerate and deepspeed; write the interpreter: dtrun -n 2 python3 "
            "-m train --lr 1");
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

TEST_F(SplitTest, AnotherLauncherIsNoProgram) {
  EXPECT_EQ(Refused({"mpiexec", "-np", "2", "-x", "A=b c", "./train", "-n", "9"}),
            "mpiexec is a launcher too, and every rank would start a job of its own; type: dtrun -n 2 --set "
            "'job.env.A=b c' ./train -n 9\n"
            "  to have mpiexec start the ranks, add --set launcher.name=mpirun --set "
            "launcher.options.program=mpiexec");
  EXPECT_EQ(
      Refused({"plan", "-q", "srun", "-N", "2", "-n", "8", "train"}),
      "srun is a launcher too, and every rank would start a job of its own; type: dtrun plan -q -N 2 -n 8 "
      "--set cluster.from=slurm train\n"
      "  outside of an allocation of salloc or sbatch, in place of that --set: --hosts node0,node1\n"
      "  to run srun itself: dtrun plan -q -- srun -N 2 -n 8 train");
  EXPECT_THAT(Refused({"srun", "--mpi=pmix", "-n", "2", "train"}),
              HasSubstr("type: dtrun --set job.pmi=pmix -n 2 --set cluster.from=slurm train\n"));
  EXPECT_THAT(Refused({"horovodrun", "-np", "2", "train.py"}),
              HasSubstr("type: dtrun -n 2 --set job.dialects=horovod train.py\n"
                        "  without Horovod, in place of that --set: python3 -m dtrun.horovod in front"));
  EXPECT_THAT(Refused({"accelerate", "launch", "--num_processes", "2", "train.py"}),
              HasSubstr("type: dtrun -n 2 train.py\n"));
  EXPECT_THAT(Refused({"-n", "2", "deepspeed", "train.py"}), HasSubstr("dtrun -n 2 -- deepspeed train.py"));
  EXPECT_THAT(Refused({"-n", "4", "-H", "a", "mpirun", "-np", "2", "train"}),
              HasSubstr("type: dtrun -H a -n 2 train\n"));
  EXPECT_THAT(Refused({"mpirun", "--map-by", "node", "train"}),
              HasSubstr("type dtrun in its place\n  --map-by is a flag of mpirun"));
  EXPECT_THAT(Refused({"-n", "2", "python3", "-m", "torch.distributed.run", "--nproc_per_node", "2", "a.py"}),
              HasSubstr("type: dtrun torchrun --nproc_per_node 2 a.py\n"));
  EXPECT_THAT(Good({"-n", "1", "--", "mpirun", "-np", "2"}).command, ElementsAre("mpirun", "-np", "2"));
}

TEST_F(SplitTest, FlagsInAnotherLaunchersCommandAreThatLaunchers) {
  const auto type = [&](const Typed& words) {
    const std::string text = Refused(words);
    const std::size_t at = text.find("type");
    return at == text.npos ? text : text.substr(at, text.find('\n') - at);
  };
  EXPECT_EQ(type({"mpirun", "-N", "2", "-hostfile", "h", "train"}),
            "type: dtrun --processes-per-host 2 --hostfile h train");
  EXPECT_EQ(type({"-N", "3", "mpirun", "-c", "2", "train"}), "type: dtrun -N 3 -n 2 train")
      << "what is dtrun's stays dtrun's";
  EXPECT_EQ(type({"srun", "-N", "2", "train"}), "type: dtrun -N 2 --set cluster.from=slurm train");
  EXPECT_EQ(type({"deepspeed", "--hostfile", "h", "--num_nodes", "1", "train.py"}),
            "type: dtrun --hostfile h -N 1 train.py");
  EXPECT_EQ(type({"accelerate", "launch", "--num_machines", "1", "--num_processes", "2", "train.py"}),
            "type: dtrun -n 2 train.py");
  EXPECT_THAT(Refused({"accelerate", "launch", "--num_machines", "2", "--num_processes", "2", "train.py"}),
              HasSubstr("type: dtrun -N 2 -n 2 train.py\n  and name the hosts: --hosts node0,node1\n"));
  EXPECT_EQ(type({"accelerate", "launch", "-m", "--num_processes", "2", "pkg.train", "--lr", "1"}),
            "type: dtrun -n 2 python3 -m pkg.train --lr 1");
  EXPECT_THAT(
      Refused({"accelerate", "launch", "--config_file", "c.yaml", "train.py"}),
      HasSubstr("in its place\n  --config_file is a flag of accelerate that dtrun does not read; write"));
  EXPECT_THAT(Refused({"mpirun", "--nothing-like-it", "train"}),
              HasSubstr("dtrun knows no flag '--nothing-like-it' of mpirun; leave it out"));
}

TEST_F(SplitTest, HostsAreNamedOnceInOurWords) {
  for (const Typed& typed :
       {Typed{"srun", "-N2", "-n4", "-w", "a,b", "x"}, Typed{"srun", "--nodelist=a,b", "x"},
        Typed{"-H", "a,b", "srun", "-N", "1", "x"}, Typed{"--hostfile", "h", "srun", "x"},
        Typed{"--set", "cluster.from=lsf", "srun", "x"}}) {
    EXPECT_THAT(Refused(typed), Not(HasSubstr("cluster.from=slurm")));
  }
  EXPECT_THAT(Refused({"srun", "-n", "4", "--ntasks-per-node=2", "x"}),
              HasSubstr("type: dtrun -n 4 --processes-per-host 2 --set cluster.from=slurm x\n"));
  EXPECT_THAT(Refused({"horovodrun", "--gloo", "-np", "2", "x"}),
              HasSubstr("type: dtrun --set job.dialects=horovod -n 2 x\n"));
  EXPECT_THAT(Refused({"mpirun", "-n", "4", "-host", "a,b,a,b", "x"}),
              HasSubstr("type: dtrun -n 4 --hosts a:2,b:2 x\n"));
  EXPECT_THAT(Refused({"mpirun", "-host", "a:2,b", "-n", "4", "-host", "a", "x"}),
              HasSubstr("type: dtrun --hosts a:3,b:1 -n 4 x\n"));
  EXPECT_THAT(Refused({"mpirun", "-host", "a,b", "x"}), HasSubstr("type: dtrun --hosts a,b x\n"));
}

TEST_F(SplitTest, TorchrunHasVariablesForOurOptions) {
  EXPECT_THAT(
      Refused(
          {"plan", "--set", "job.env.A=b c", "--set", "output.prefix=rank", "-n", "2", "torchrun", "t.py"}),
      HasSubstr(
          "type: A='b c' DTRUN_CONFIG_OUTPUT_PREFIX=rank dtrun plan torchrun --nproc_per_node=2 t.py\n"));
  EXPECT_THAT(Refused({"--torch-backend", "dtrun", "torchrun", "t.py"}),
              HasSubstr("torchrun comes first, and variables set dtrun's own options; type: "
                        "DTRUN_CONFIG_BACKEND_TORCH=dtrun dtrun torchrun t.py"));
  EXPECT_THAT(Refused({"-v", "plan", "torch.distributed.launch", "--use_env", "t.py"}),
              HasSubstr("type: dtrun plan torch.distributed.launch --use_env t.py\n  without -v, which"));
  EXPECT_THAT(Refused({"plan", "-n", "4", "-H", "a,b", "torchrun", "--nproc_per_node=2", "t.py"}),
              HasSubstr("type: dtrun plan torchrun --nproc_per_node=2 t.py\n  without -H a,b, which"));
  EXPECT_THAT(Refused({"plan", "-m", "torch.distributed.run", "--nproc_per_node", "2", "t.py"}),
              HasSubstr("type: dtrun plan torchrun --nproc_per_node 2 t.py\n"));
}

TEST_F(SplitTest, VerbosityOfOtherLaunchersIsOurs) {
  EXPECT_THAT(Refused({"mpirun", "-v", "-n", "2", "x"}), HasSubstr("type: dtrun -v -n 2 x\n"));
  EXPECT_THAT(Refused({"show", "mpirun", "-q", "-n", "2", "x"}), HasSubstr("type: dtrun -q show -n 2 x\n"));
  EXPECT_THAT(Refused({"show", "srun", "-v", "-w", "a", "x"}),
              HasSubstr("type: dtrun -v show --hosts a x\n"));
  EXPECT_THAT(Refused({"show", "horovodrun", "--verbose", "-np", "2", "x"}),
              HasSubstr("type: dtrun --verbose show -n 2 --set job.dialects=horovod x\n"));
  EXPECT_THAT(Refused({"srun", "-q", "high", "x"}),
              HasSubstr("-q is a flag of srun; this is for the scheduler"));
  EXPECT_THAT(Refused({"horovodrun", "-v"}), HasSubstr("run horovodrun --version"));
  EXPECT_THAT(Refused({"srun", "-H", "x"}), HasSubstr("-H is a flag of srun; this is for the scheduler"));
  EXPECT_THAT(Refused({"show", "-v", "x"}), HasSubstr("goes before the verb: dtrun -v show"));
  EXPECT_THAT(Refused({"--exclude", "a", "x"}), HasSubstr("--exclude is a flag of deepspeed and srun; name"));
}

TEST_F(SplitTest, AValueThatLooksLikeAnOptionIsNone) {
  EXPECT_EQ(Refused({"--network-interface", "-n", "2", "x"}),
            "--network-interface needs a value, and '-n' looks like an option; if it is the value: "
            "--network-interface=-n");
  EXPECT_THAT(Refused({"--hostfile", "--hosts", "a", "x"}),
              HasSubstr("--hostfile needs a value, and '--hosts'"));
  EXPECT_THAT(Refused({"--nproc", "-n", "2", "x"}), HasSubstr("-n VALUE counts"));
  EXPECT_THAT(Good({"--hostfile=-n", "x"}).words, ElementsAre("--hostfile", "-n"));
}

TEST_F(SplitTest, LaunchersThatStartARankForEachGpuAreTakenAtTheirWord) {
  for (const Typed& typed : {Typed{"deepspeed", "train.py"}, Typed{"accelerate", "launch", "train.py"}}) {
    EXPECT_THAT(Refused(typed),
                AllOf(HasSubstr("type: dtrun -n gpu train.py\n  -n gpu is a rank for each GPU"),
                      HasSubstr("without GPUs write a number: -n 4")));
  }
  EXPECT_THAT(Refused({"deepspeed", "--hostfile", "h", "train.py"}),
              HasSubstr("type: dtrun --hostfile h train.py"))
      << "the file has its slots";
  EXPECT_THAT(Refused({"accelerate", "launch", "--cpu", "train.py"}),
              HasSubstr("type: dtrun --set job.env.ACCELERATE_USE_CPU=true train.py"));
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
  EXPECT_THAT(Refused({"kill", "-9", "7"}), HasSubstr("Ctrl-C"));
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
  EXPECT_THAT(
      Good({"-H", "hf", "x"}).warned,
      ElementsAre("-H hf: a host is called 'hf', and a file here is too; for that file: --hostfile hf"));
  EXPECT_THAT(Good({"-H", "a", "x"}).warned, IsEmpty());
  EXPECT_THAT(Refused({"deepspeed", "-H", "hf", "--num_gpus", "2", "t.py"}),
              HasSubstr("type: dtrun --hostfile hf --processes-per-host 2 t.py\n"));
  EXPECT_THAT(Refused({"-H", "a", "deepspeed", "--num_gpus", "2", "t.py"}),
              HasSubstr("type: dtrun -H a --processes-per-host 2 t.py\n"));
}

TEST_F(SplitTest, ANumberIsAConfigOnlyWhereThereIsSuchAFile) {
  for (const Typed& typed : {Typed{"-c", "2", "-n", "2", "x"}, Typed{"-c2", "x"}}) {
    EXPECT_THAT(Refused(typed), AllOf(HasSubstr("-c 2: -c names a config here, and there is no file '2'"),
                                      HasSubstr("for srun's -c: --set job.bind=compact")));
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

}  // namespace
}  // namespace dtrun::cli
