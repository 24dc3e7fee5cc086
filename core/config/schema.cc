// Core's own options, in the order of the manual page.
#include "core/config/settings.h"

namespace dtrun::config {
namespace {

using options::Schema;
using options::Spec;
using options::Type;

constexpr char kRoot[] = "dtrun";
constexpr char kPlan[] = "plan";
constexpr char kAgent[] = "agent";
constexpr char kCommunicator[] = "communicator";
constexpr char kPlugins[] = "plugin loader";

Spec Option(const char* key, Type type, const char* reader, const char* doc) {
  Spec spec;
  spec.key = key;
  spec.type = type;
  spec.reader = reader;
  spec.doc = doc;
  spec.since = "0.1";
  return spec;
}

Spec Renamed(Spec spec, const char* former_key) {
  spec.former_key = former_key;
  return spec;
}

Spec Default(Spec spec, const char* text) {
  spec.default_text = text;
  return spec;
}

Spec Range(Spec spec, const char* min, const char* max) {
  spec.min_text = min;
  spec.max_text = max;
  return spec;
}

Spec Choices(Spec spec, std::vector<std::string> choices) {
  spec.choices = std::move(choices);
  return spec;
}

Spec Scope(Spec spec, int scope) {
  spec.scope = scope;
  return spec;
}

Spec Long(Spec spec, const char* text) {
  spec.long_doc = text;
  return spec;
}

void AddJob(Schema& schema) {
  schema.push_back(Long(Option("job.name", Type::kString, kRoot, "name of the job in logs and folders"),
                        "1 to 64 of the characters A-Z a-z 0-9 . _ -. Unset, it is the name of the config "
                        "file without its extension, or \"job\" without a file."));
  schema.push_back(
      Long(Option("job.command", Type::kList, kPlan, "program and arguments of every rank"),
           "Any program. ${RANK}, ${LOCAL_RANK}, ${WORLD_SIZE} and the like expand per rank; $${ "
           "stands for ${. A program on the command line replaces it."));
  schema.back().required = true;
  schema.push_back(
      Choices(Range(Default(Long(Option("job.processes_per_host", Type::kCount, kPlan, "ranks on each host"),
                                 "\"cpu\" is one per core, \"gpu\" one per GPU that "
                                 "CUDA_VISIBLE_DEVICES and its like leave; \"auto\" is GPUs when there "
                                 "are any, else cores."),
                            "1"),
                    "1", "4096"),
              {"cpu", "gpu", "auto"}));
  schema.back().unit = "processes";
  schema.push_back(Range(
      Long(Option("job.ranks", Type::kUint, kRoot, "ranks of the job, on all hosts together"),
           "As -n of mpirun and srun. Hosts are filled in order, each up to its slots, and up to "
           "job.processes_per_host where that is given in the same place; hosts without slots get equal "
           "shares. Hosts that get none are left out. Unset, every host runs job.processes_per_host ranks or "
           "has slots."),
      "1", "1000000"));
  schema.push_back(Choices(
      Default(
          Long(Option("job.bind", Type::kEnum, kPlan, "processors that each rank may run on"),
               "\"compact\" gives each rank an equal share of whole cores, neighbours in rank side by "
               "side; \"spread\" gives the same shares, neighbours on different NUMA nodes; \"per-numa\" "
               "and \"per-socket\" give a rank all of the nodes or sockets that its share touches; "
               "\"none\" what dtrun itself has. \"auto\" is \"per-numa\" where there are several nodes "
               "and a core for each rank, else \"none\". No rank leaves the processors that dtrun may use."),
          "auto"),
      {"auto", "none", "compact", "spread", "per-numa", "per-socket"}));
  schema.push_back(Choices(
      Default(
          Long(Option("job.gpu_visibility", Type::kEnum, kPlan, "GPUs that each rank sees"),
               "\"all\" changes nothing: a program takes its GPU by LOCAL_RANK. \"own\" gives each rank its "
               "part of the visible ones through CUDA_VISIBLE_DEVICES (HIP_VISIBLE_DEVICES on AMD), so a "
               "program takes device 0."),
          "all"),
      {"all", "own"}));
  schema.push_back(
      Long(Option("job.env", Type::kMap, kPlan, "environment variables of every rank"),
           "On top of the environment that dtrun was started with. Numbers and true or false are "
           "taken as their text; placeholders expand as in job.command."));
  schema.push_back(Long(
      Option("job.dialects", Type::kList, kPlan, "environments of other launchers that every rank also gets"),
      "Such as [\"horovod\", \"azureml\"], on top of the launcher's own; dtrun env --list shows them. "
      "Two that disagree about a variable are an error."));
  schema.push_back(Long(
      Option("job.roles", Type::kMap, kPlan, "how many ranks are chief, worker, ps and evaluator"),
      "Such as { chief = 1, worker = 2, ps = 1 }; they add up to all ranks. Ranks are dealt from rank 0 in "
      "the order chief, worker, ps, evaluator, however you write the table. Read by job.success and by "
      "job.dialects tf-config and torchrun: only with \"torchrun\" there a rank has ROLE_NAME."));
  schema.push_back(Long(
      Default(Option("job.success", Type::kNames, kPlan, "whose success is the job's: all, or some roles"),
              "auto"),
      "\"all\", \"chief\", or a list of roles of job.roles such as [\"chief\", \"evaluator\"]. Once "
      "every rank of these has exited with 0, dtrun asks the others to end, and the job has succeeded; until "
      "then a "
      "failure of any rank fails it. \"auto\" is the chief, or the workers without one, where there are "
      "parameter servers, which never end by themselves; else all."));
  schema.push_back(Long(Option("job.cwd", Type::kPath, kPlan, "working folder of every rank"),
                        "Unset, it is the folder where dtrun was started."));
  schema.back().must_exist = true;
  schema.push_back(Range(Default(Option("job.grace", Type::kDuration, kAgent,
                                        "time between the first signal to a rank and SIGKILL"),
                                 "10s"),
                         "0s", "1h"));
  schema.push_back(Range(
      Long(Option("job.memory", Type::kBytes, kAgent, "memory that the ranks of each host may hold together"),
           "Kept by a control group (cgroup v2), without swap; a job that may not make one is "
           "refused with the reason. When it is used up, the kernel ends a rank and the verdict "
           "says so. Unset, there is no limit."),
      "16MiB", "1024TiB"));
  schema.push_back(Range(Default(Long(Option("job.master_port", Type::kUint, kAgent,
                                             "port where rank 0 may listen (MASTER_PORT)"),
                                      "0 takes any free one. dtrun holds it until rank 0 listens: nobody "
                                      "gets it by chance. A program with SO_REUSEADDR that wants this very "
                                      "port can listen there first, and is named when ranks fail."),
                                 "0"),
                         "0", "65535"));
  schema.push_back(Choices(
      Default(
          Long(
              Option("job.pmi", Type::kEnum, kPlan,
                     "what an MPI library finds so that it starts without mpirun"),
              "\"pmix\" is for Open MPI, \"pmi1\" for MPICH, Intel MPI and MVAPICH. \"auto\" serves what the "
              "mpi backend needs or the program is linked with; a program that an interpreter starts has to "
              "be named. Under the mpirun launcher it is \"none\"."),
          "auto"),
      {"auto", "pmix", "pmi1", "none"}));
  schema.push_back(Choices(
      Default(
          Long(Renamed(Option("job.isolated_ranks", Type::kEnum, kAgent,
                              "what to do when ranks never join each other"),
                       "job.lone_worlds"),
               "Ranks that have PyTorch, TensorFlow, JAX or an MPI loaded and meet nobody train alone, each "
               "with the whole data, and all succeed. \"warn\" says so once a rank is seen to work alone; "
               "\"fail\" ends the job then, and fails it; \"allow\" does not look. Jobs of a few "
               "seconds may end "
               "unseen."),
          "warn"),
      {"warn", "fail", "allow"}));
}

void AddCluster(Schema& schema) {
  schema.push_back(Long(
      Option("cluster.hosts", Type::kList, kPlan, "hosts of the job, each NAME or NAME:SLOTS"),
      "Ranks are numbered along the list. A host runs as many ranks as it has slots, or "
      "job.processes_per_host of them. Unset, and without a hostfile or a platform, the job runs on this "
      "machine alone."));
  schema.push_back(Long(Option("cluster.hostfile", Type::kPath, kRoot, "file with the hosts, one a line"),
                        "NAME, NAME slots=N (Open MPI, DeepSpeed, Horovod) or NAME:N; # starts a comment."));
  schema.back().must_exist = true;
  schema.push_back(Long(
      Option("cluster.from", Type::kString, kRoot, "platform whose variables say which hosts there are"),
      "\"slurm\", \"openmpi\", \"pmi\", \"mpijob\", \"azureml\", \"gcp\", \"vertex\", \"pai\", \"spark\", "
      "\"kubeflow\" or \"torchrun\"; \"auto\" takes the one whose own variables are set. It also says, where "
      "you do not, which host this is, where host 0 is, and how many ranks each has."));
  schema.push_back(Range(
      Long(Option("cluster.host_count", Type::kUint, kRoot, "number of hosts"),
           "Of a list, a hostfile or an allocation the first ones; fewer there are an error. With \"manual\" "
           "hosts need no names, only their number."),
      "1", "65536"));
  schema.push_back(Choices(
      Default(
          Long(Option("cluster.connect", Type::kEnum, kRoot, "how dtrun reaches the other hosts"),
               "\"ssh\" starts them by cluster.remote_shell; \"slurm\" by one srun, in the allocation that "
               "dtrun "
               "runs in, and comes with cluster.from = \"slurm\"; with \"manual\" somebody else starts the "
               "same dtrun command on every host, each with its own --host-index, and they meet at "
               "cluster.root."),
          "ssh"),
      {"ssh", "slurm", "manual"}));
  schema.push_back(Long(
      Option("cluster.root", Type::kString, kRoot, "where agents reach host 0, ADDRESS or ADDRESS:PORT"),
      "Needed for \"manual\", with a port. Unset, agents of \"ssh\" are told the address that leads to the "
      "first other host, and all others of this machine."));
  schema.push_back(Range(Long(Option("cluster.root_port", Type::kUint, kRoot, "port where the root listens"),
                              "Where cluster.root does not say one. Unset, any free one "
                              "(cluster.port_range); with a platform that "
                              "has a port for the ranks another, which all hosts derive from it."),
                         "1", "65535"));
  schema.push_back(Long(
      Option("cluster.port_range", Type::kString, kRoot, "ports that hosts listen on, FIRST-LAST"),
      "For sites whose firewall has a window: the control port, the connectivity check, MASTER_PORT, tasks' "
      "ports, Horovod's store, and UCX, Open MPI, MPICH and libfabric's tcp. Unset, the system chooses; "
      "docs/networking.md lists what ignores the range."));
  schema.push_back(
      Range(Long(Option("cluster.host_index", Type::kUint, kRoot, "which of the hosts this one is"),
                 "For \"manual\"; as --host-index. Host 0 is the root."),
            "0", "65535"));
  schema.back().scope = DTRUN_SCOPE_HOST;
  schema.push_back(Long(
      Option("cluster.key_file", Type::kPath, kRoot, "file with the key that all hosts share"),
      "For \"manual\": 64 hex digits, as `openssl rand -hex 32` prints them, readable by its owner only. "
      "Unset, DTRUN_CLUSTER_KEY has the key, or the file ~/.dtrun/key. \"ssh\" makes a key for each job."));
  schema.back().must_exist = true;
  schema.push_back(
      Range(Long(Option("cluster.min_hosts", Type::kUint, kRoot, "fewest hosts that the job runs on"),
                 "Unset, all of them. With fewer it starts on those that have come when nobody else does for "
                 "cluster.last_call, and starts again on the others when one is lost (restart.max), or on "
                 "all when one "
                 "comes."),
            "1", "65536"));
  schema.push_back(Range(Default(Option("cluster.last_call", Type::kDuration, kRoot,
                                        "wait for more hosts once there are cluster.min_hosts"),
                                 "30s"),
                         "0s", "24h"));
  schema.push_back(Range(
      Default(Option("cluster.join_timeout", Type::kDuration, kRoot, "longest wait for all hosts to join"),
              "5m"),
      "100ms", "24h"));
  schema.push_back(Range(Default(Option("cluster.lost_after", Type::kDuration, kRoot,
                                        "silence after which root and agent give each other up"),
                                 "10s"),
                         "500ms", "1h"));
  schema.push_back(
      Default(Long(Option("cluster.remote_shell", Type::kList, kRoot, "command that runs another on a host"),
                   "The host's name and the command are appended. It has no terminal, so ssh must log in "
                   "without a prompt."),
              "ssh,-o,BatchMode=yes,-o,ConnectTimeout=10"));
  schema.push_back(Option("cluster.dtrun", Type::kString, kRoot,
                          "path of dtrun on the other hosts; unset: that of the dtrun you started"));
  schema.push_back(Default(Long(Option("cluster.oversubscribe", Type::kBool, kPlan,
                                       "allow more ranks on a host than it has slots"),
                                "Also allows one machine to be several hosts."),
                           "false"));
}

void AddPlugins(Schema& schema) {
  schema.push_back(Default(Option("launcher.name", Type::kString, kPlugins,
                                  "how ranks are launched; dtrun plugins list shows the choices"),
                           "per-process"));
  schema.push_back(
      Option("launcher.path", Type::kPath, kPlugins, "launcher plugin file, instead of a search by name"));
  schema.push_back(Long(
      Default(Option("backend.name", Type::kNames, kPlugins,
                     "transport of the communicator; dtrun plugins list shows the choices"),
              "gloo"),
      "\"none\" starts the ranks without a communicator; backend.options are then not looked at. Of a "
      "list, such as [\"nccl\", \"ucx\", \"gloo\"], the first that all hosts can use is taken; \"auto\" is "
      "that list. The options of each then stand in a table of its name, such as [backend.gloo]. A single "
      "name never falls back to another."));
  schema.push_back(
      Option("backend.path", Type::kPath, kPlugins, "backend plugin file, instead of a search by name"));
  schema.push_back(Range(Default(Option("backend.timeout", Type::kDuration, kCommunicator,
                                        "longest wait for peers in one operation"),
                                 "60s"),
                         "1ms", "24h"));
  schema.push_back(Scope(Option("plugins.path", Type::kPathList, kPlugins,
                                "folders searched for plugins, before the installed ones"),
                         DTRUN_SCOPE_HOST));
}

void AddComm(Schema& schema) {
  schema.push_back(Choices(
      Default(Long(Option("comm.local", Type::kEnum, kCommunicator, "transport between ranks on one host"),
                   "\"shm\" is shared memory, and the backend carries what leaves the host; \"none\" "
                   "leaves everything to the backend."),
              "shm"),
      {"shm", "none"}));
  schema.push_back(
      Range(Default(Long(Option("comm.emulate_hosts", Type::kUint, kCommunicator,
                                "for tests: hosts that the ranks of one host pretend to live on"),
                         "Ranks are dealt out in order, as evenly as possible. Shared memory then joins the "
                         "ranks of one such host only, and the backend the hosts."),
                    "1"),
            "1", "4096"));
}

void AddNetwork(Schema& schema) {
  schema.push_back(Default(
      Long(Option("network.interface", Type::kString, kAgent, "interfaces that may join the hosts"),
           "\"auto\" tests before the start which ones connect the hosts, and takes the fastest. Or a list "
           "with commas: "
           "names or prefixes of names (\"eth0,ens\"), exact names (\"=eth0\"), addresses and networks "
           "(\"10.0.0.0/16\"), of which each host uses what it has; \"^docker\" excludes. These are tested "
           "too. \"off\" leaves the choice to the libraries."),
      "auto"));
  schema.push_back(
      Long(Option("network.interface_on", Type::kMap, kAgent, "network.interface of single hosts, by name"),
           "Such as { node1 = \"ens3\" }; the other hosts keep network.interface."));
}

void AddRestart(Schema& schema) {
  schema.push_back(Range(
      Default(Long(Option("restart.max", Type::kUint, kAgent, "how often a failed job is started again"),
                   "All ranks start again, with a new generation (DTRUN_GENERATION), a new port and an "
                   "empty store. A program that fails within a second of its first start, before any "
                   "rank has joined, is not."),
              "0"),
      "0", "1000000"));
  schema.push_back(
      Range(Default(Long(Option("restart.backoff", Type::kDuration, kAgent, "wait before the second restart"),
                         "The first restart comes at once; the wait doubles each time, up to a minute."),
                    "1s"),
            "0s", "1h"));
  schema.push_back(Default(
      Long(Option("restart.on", Type::kList, kAgent, "classes of failures that are worth a restart"),
           "\"user-error\": the program failed by itself. \"signal\": it was killed. "
           "\"out-of-memory\": by the "
           "kernel, or it got no more memory. \"rendezvous\": a peer never came. \"network\": a peer was "
           "lost. \"hang\": a rank "
           "stood still until another one gave up waiting. \"launcher\": a process of dtrun that ranks "
           "needed was "
           "lost, such as a host's PMIx server."),
      "user-error,signal,out-of-memory,rendezvous,network,hang,launcher"));
}

void AddWatch(Schema& schema) {
  schema.push_back(
      Default(Long(Option("watch.stall", Type::kString, kAgent,
                          "how long a job may stand still before dtrun says who waits, and where"),
                   "A duration, or \"off\". A job stands still when no rank prints, calls a collective that "
                   "dtrun records, reads, writes or gets to another place, and at least one does not compute "
                   "either. Stacks go to stacks.txt in the run's folder."),
              "10m"));
  schema.push_back(Choices(
      Default(Long(Option("watch.on_stall", Type::kEnum, kAgent, "what happens to a job that stands still"),
                   "\"report\": it goes on. \"fail\": it is ended, with class \"hang\", when all ranks have "
                   "stood still so long: one that computes may be what the others wait for."),
              "report"),
      {"report", "fail"}));
}

void AddFailures(Schema& schema) {
  schema.push_back(
      Scope(Long(Option("failures.path", Type::kPathList, kRoot, "files with known failures of your own"),
                 "TOML, each failure as [[failure]] with id, texts, what and fix; docs/failures.md has an "
                 "example. They come "
                 "before dtrun's own, and are read when a job has failed."),
            DTRUN_SCOPE_HOST));
  schema.back().must_exist = true;
}

void AddLogs(Schema& schema) {
  schema.push_back(
      Scope(Long(Default(Option("logs.dir", Type::kString, kAgent, "folder of one run, with a log per rank"),
                         "runs/{job}/{time}"),
                 "Relative to the folder where dtrun was started. {job} is the job's name, {time} "
                 "the start of the run. Without {time} a folder is used again: what the run before has "
                 "left there goes into a folder before-TIME in it, and two jobs at a time are refused."),
            DTRUN_SCOPE_HOST));
  schema.push_back(Scope(
      Long(Default(Option("logs.mode", Type::kString, kAgent, "who may read the folder of a run"), "private"),
           "\"private\" is you alone, \"group\" the folder's group too, \"all\" everybody; or the "
           "folder's mode as an octal number, such as \"0750\". Files get the same without the "
           "right to execute. The umask changes nothing."),
      DTRUN_SCOPE_HOST));
  schema.push_back(Scope(
      Long(Choices(
               Default(Option("logs.prefix", Type::kEnum, kAgent, "prefix of each line of output"), "auto"),
               {"auto", "rank", "none"}),
           "\"auto\" is the rank where there are several, else nothing."),
      DTRUN_SCOPE_PROCESS));
}

}  // namespace

const options::Schema& CoreSchema() {
  static const Schema kSchema = [] {
    Schema schema;
    AddJob(schema);
    AddCluster(schema);
    AddPlugins(schema);
    AddComm(schema);
    AddNetwork(schema);
    AddRestart(schema);
    AddWatch(schema);
    AddFailures(schema);
    AddLogs(schema);
    return schema;
  }();
  return kSchema;
}

}  // namespace dtrun::config
