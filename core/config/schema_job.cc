// Core's own options of the table [job], in the order of the manual page.
#include "core/config/schema_rows.h"

namespace dtrun::config::rows {

void AddJob(Schema& schema) {
  schema.push_back(Long(Option("job.name", Type::kString, kRoot, "name of the job in logs and folders"),
                        "1 to 64 of the characters A-Z a-z 0-9 . _ -. If unset, the name of the config "
                        "file without its extension; without a file that of the script, such as train of "
                        "train.py, or else \"job\"."));
  schema.push_back(Long(
      Option("job.command", Type::kList, kPlan, "program and arguments of every rank"),
      "Any program. ${RANK}, ${LOCAL_RANK}, ${WORLD_SIZE} and the like expand per rank; write $${ for "
      "a literal ${; nothing else does. A .py that is not executable runs with python3. Relative paths in it "
      "are those of the rank's folder, job.cwd. A program on the command line replaces it."));
  schema.back().required = true;
  schema.push_back(
      Choices(Range(Default(Long(Option("job.processes_per_host", Type::kCount, kPlan, "ranks on each host"),
                                 "\"cpu\" starts one per core, \"gpu\" one per GPU that "
                                 "CUDA_VISIBLE_DEVICES and the like leave visible; \"auto\" counts GPUs if "
                                 "there are any, else cores."),
                            "1"),
                    "1", "4096"),
              {"cpu", "gpu", "auto"}));
  schema.back().unit = "processes";
  schema.push_back(Range(
      Long(Option("job.ranks", Type::kUint, kRoot, "ranks of the job, on all hosts together"),
           "As -n of mpirun and srun. dtrun fills hosts in order, each up to its slots, and up to "
           "job.processes_per_host if that is given in the same place; hosts without slots get equal "
           "shares. Hosts that get no rank are left out. If unset, every host runs as many ranks as it has "
           "slots, or job.processes_per_host."),
      "1", "1000000"));
  schema.push_back(Choices(
      Default(Long(Option("job.bind", Type::kEnum, kPlan, "processors that each rank may run on"),
                   "\"compact\" gives each rank an equal share of whole cores, neighbouring ranks side by "
                   "side; \"spread\" gives the same shares, neighbouring ranks on different NUMA nodes; "
                   "\"per-numa\" and \"per-socket\" give a rank all of the nodes or sockets that its share "
                   "touches; \"core\" gives it one core of its share; \"none\" gives it all processors that dtrun may use, which no policy exceeds. "
                   "\"auto\" is \"per-numa\" on a host with several nodes and a core for each rank, else "
                   "\"none\"."),
              "auto"),
      {"auto", "none", "compact", "spread", "per-numa", "per-socket", "core"}));
  schema.push_back(Choices(
      Default(
          Long(
              Option("job.gpu_visibility", Type::kEnum, kPlan, "GPUs that each rank sees"),
              "\"all\" changes nothing: a program selects its GPU by LOCAL_RANK. \"own\" gives each rank its "
              "part of the visible GPUs through CUDA_VISIBLE_DEVICES (HIP_VISIBLE_DEVICES on AMD), so a "
              "program uses device 0."),
          "all"),
      {"all", "own"}));
  schema.push_back(
      Long(Option("job.env", Type::kMap, kPlan, "environment variables of every rank"),
           "Added to the environment that dtrun was started with. Numbers, true and false become their "
           "text; placeholders expand as in job.command."));
  schema.push_back(Long(
      Option("job.dialects", Type::kList, kPlan, "environments of other launchers that every rank also gets"),
      "For example [\"horovod\", \"azureml\"], in addition to the launcher's own; dtrun env --list shows "
      "them. It is an error if two of them set a variable to different values."));
  schema.push_back(Long(
      Option("job.roles", Type::kMap, kPlan, "how many ranks are chief, worker, ps and evaluator"),
      "For example { chief = 1, worker = 2, ps = 1 }; the numbers add up to all ranks. From rank 0 on, ranks "
      "become chief, worker, ps and evaluator, in this order, however you write the table. Used by "
      "job.success and by the dialects tf-config and torchrun: ranks get ROLE_NAME only with \"torchrun\" in "
      "job.dialects."));
  schema.push_back(Long(
      Default(Option("job.success", Type::kNames, kPlan, "ranks that must succeed: all, or some roles"),
              "auto"),
      "\"all\", \"chief\", or a list of roles of job.roles such as [\"chief\", \"evaluator\"]. Once "
      "every rank of these has exited with 0, dtrun ends the others, and the job has succeeded; until "
      "then the failure of any rank fails the job. \"auto\" is all, but in a job with parameter servers, "
      "which never end by themselves, it is the chief, or the workers if there is no chief."));
  schema.push_back(Long(Option("job.cwd", Type::kPath, kPlan, "working folder of every rank"),
                        "If unset, the folder where dtrun was started, not that of the config file; \".\" is "
                        "the folder of the config file."));
  schema.back().must_exist = true;
  schema.push_back(Range(Default(Option("job.grace", Type::kDuration, kAgent,
                                        "time between the first signal to a rank and SIGKILL"),
                                 "10s"),
                         "0s", "1h"));
  schema.push_back(
      Range(Long(Option("job.time_limit", Type::kDuration, kAgent, "longest time that the job may take"),
                 "From its start, with the time in which hosts join and with all restarts. Then dtrun ends "
                 "all ranks, "
                 "keeps their stacks, and exits with 124, as timeout(1) does. If unset, there is no limit."),
            "1s", "87600h"));
  schema.push_back(Range(
      Long(Option("job.memory", Type::kBytes, kAgent, "memory that the ranks of each host may use together"),
           "Enforced by a cgroup (v2), without swap; if dtrun cannot create one, it refuses the job "
           "and says why. At the limit the kernel kills a rank, and the verdict says so. If unset, "
           "there is no limit."),
      "16MiB", "1024TiB"));
  schema.push_back(Range(Default(Long(Option("job.master_port", Type::kUint, kAgent,
                                             "port where rank 0 may listen (MASTER_PORT)"),
                                      "0 takes any free port. dtrun holds it until rank 0 listens, so "
                                      "that no other program gets it by chance. A program with SO_REUSEADDR "
                                      "that asks for this port can still listen there first; if ranks "
                                      "fail, dtrun names it."),
                                 "0"),
                         "0", "65535"));
  schema.push_back(Choices(
      Default(
          Long(
              Option("job.pmi", Type::kEnum, kPlan,
                     "what an MPI library finds so that it starts without mpirun"),
              "\"pmix\" is for Open MPI, \"pmi1\" for MPICH, Intel MPI and MVAPICH. \"auto\" serves what the "
              "mpi backend needs or the program is linked with; for a program that an interpreter starts, "
              "choose \"pmix\" or \"pmi1\". Under the mpirun launcher it is \"none\"."),
          "auto"),
      {"auto", "pmix", "pmi1", "none"}));
  schema.push_back(Choices(
      Default(
          Long(
              Renamed(Option("job.isolated_ranks", Type::kEnum, kAgent,
                             "what to do when ranks never join each other"),
                      "job.lone_worlds"),
              "If ranks load PyTorch, TensorFlow, JAX or an MPI and do not join each other, each trains "
              "alone on the whole data set, and all succeed. \"warn\" prints a line when dtrun sees a rank "
              "work alone; \"fail\" ends the job as failed; \"allow\" does not check. dtrun may miss jobs of "
              "a few seconds."),
          "warn"),
      {"warn", "fail", "allow"}));
}

}  // namespace dtrun::config::rows
