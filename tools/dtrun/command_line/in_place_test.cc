// Tests of the answers to other launchers' command lines.
#include <gmock/gmock.h>

#include "tools/dtrun/command_line/testing.h"

namespace dtrun::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
class InPlaceTest : public SplitTest {};

TEST_F(InPlaceTest, AnotherLauncherIsNoProgram) {
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
              AllOf(HasSubstr("; type: dtrun train\n  --map-by is a flag of mpirun"),
                    HasSubstr(" start the ranks, add --set launcher.name=mpirun --set "
                              "'launcher.options.arguments=[\"--map-by\",\"node\"]'")));
  EXPECT_THAT(Refused({"-n", "2", "python3", "-m", "torch.distributed.run", "--nproc_per_node", "2", "a.py"}),
              HasSubstr("type: dtrun torchrun --nproc_per_node 2 a.py\n"));
  EXPECT_THAT(Good({"-n", "1", "--", "mpirun", "-np", "2"}).command, ElementsAre("mpirun", "-np", "2"));
}

TEST_F(InPlaceTest, FlagsInAnotherLaunchersCommandAreThatLaunchers) {
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
  EXPECT_THAT(Refused({"accelerate", "launch", "--config_file", "c.yaml", "train.py"}),
              AllOf(HasSubstr("; type: dtrun -n gpu train.py\n"),
                    HasSubstr("\n  --config_file is a flag of accelerate that dtrun does not read; write")));
  EXPECT_THAT(Refused({"mpirun", "--nothing-like-it", "train"}),
              HasSubstr("dtrun knows no flag '--nothing-like-it' of mpirun; leave it out"));
}

TEST_F(InPlaceTest, FlagsThatHaveNoEqualAreToldTogether) {
  EXPECT_THAT(
      Refused({"--tv", "srun", "-n", "2", "--partition=a", "--overlap", "--cpus-per-task", "4", "x"}),
      AllOf(HasSubstr("--tv is a flag of mpirun"), HasSubstr("\n  srun is a launcher too"),
            HasSubstr("; type: dtrun -n 2 --set job.env.OMP_NUM_THREADS=4 --set cluster.from=slurm x\n"),
            HasSubstr("\n  --partition is a flag of srun; "), HasSubstr("\n  --overlap is a flag of srun"),
            HasSubstr("\n  --cpus-per-task is a flag of srun; write --set job.env.OMP_NUM_THREADS=4; ")));
  EXPECT_THAT(Refused({"accelerate", "launch", "--multi_gpu", "x"}), HasSubstr("; type: dtrun -n gpu x\n"));
}

TEST_F(InPlaceTest, HostsAreNamedOnceInOurWords) {
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

TEST_F(InPlaceTest, TorchrunHasVariablesForOurOptions) {
  EXPECT_THAT(
      Refused(
          {"plan", "--set", "job.env.A=b c", "--set", "output.prefix=rank", "-n", "2", "torchrun", "t.py"}),
      HasSubstr(
          "type: A='b c' DTRUN_CONFIG_OUTPUT_PREFIX=rank dtrun plan torchrun --nproc_per_node=2 t.py\n"));
  EXPECT_THAT(Refused({"--torch-backend", "dtrun", "torchrun", "t.py"}),
              HasSubstr("torchrun comes first, and variables set dtrun's own options; type: "
                        "DTRUN_CONFIG_BACKEND_TORCH=dtrun dtrun torchrun t.py"));
  EXPECT_THAT(Refused({"plan", "--plugin-dir", "a", "--plugin-dir=b", "torchrun", "t.py"}),
              HasSubstr("type: DTRUN_PLUGIN_PATH=a:b dtrun plan torchrun t.py\n"));
  EXPECT_THAT(Refused({"-v", "plan", "torch.distributed.launch", "--use_env", "t.py"}),
              HasSubstr("type: dtrun plan torch.distributed.launch --use_env t.py\n  without -v, which"));
  EXPECT_THAT(Refused({"plan", "-n", "4", "-H", "a,b", "torchrun", "--nproc_per_node=2", "t.py"}),
              HasSubstr("type: dtrun plan torchrun --nproc_per_node=2 t.py\n  without -H a,b, which"));
  EXPECT_THAT(Refused({"plan", "-m", "torch.distributed.run", "--nproc_per_node", "2", "t.py"}),
              HasSubstr("type: dtrun plan torchrun --nproc_per_node 2 t.py\n"));
}

TEST_F(InPlaceTest, VerbosityOfOtherLaunchersIsOurs) {
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
  EXPECT_THAT(Refused({"srun", "--exclude", "a", "x"}),
              HasSubstr("--exclude is a flag of srun; name the hosts"));
}

TEST_F(InPlaceTest, LaunchersThatStartARankForEachGpuAreTakenAtTheirWord) {
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

TEST_F(InPlaceTest, SlotsOfDeepspeedsIncludeAreRanks) {
  EXPECT_THAT(Refused({"deepspeed", "--include", "localhost:2,3", "x"}),
              HasSubstr("type: dtrun --set cluster.include=localhost:2,3 x\n"));
  EXPECT_THAT(Refused({"deepspeed", "-H", "h", "-e", "a:0@b", "x"}),
              HasSubstr("type: dtrun --hostfile h --set cluster.exclude=a:0@b x\n"));
  EXPECT_THAT(Refused({"deepspeed", "-i", "localhost", "x"}),
              HasSubstr("--set cluster.include=localhost -n gpu x\n"));
  EXPECT_THAT(Refused({"accelerate", "launch", "--deepspeed_inclusion_filter", "a:0", "x"}),
              HasSubstr("type: dtrun --set cluster.include=a:0 x\n"));
}

}  // namespace
}  // namespace dtrun::cli
