// Core's own options except those of [job], in the order of the manual page.
#include "core/config/schema_rows.h"
#include "core/config/settings.h"

namespace dtrun::config {
namespace rows {
namespace {

void AddCluster(Schema& schema) {
  schema.push_back(Long(
      Option("cluster.hosts", Type::kList, kPlan, "hosts of the job, each NAME or NAME:SLOTS"),
      "Ranks are numbered along the list. A host runs as many ranks as it has slots, or "
      "job.processes_per_host of them. If unset, and without a hostfile or a platform, the job runs on this "
      "machine alone."));
  schema.push_back(Long(Option("cluster.hostfile", Type::kPath, kRoot, "file with the hosts, one a line"),
                        "NAME, NAME slots=N (Open MPI, DeepSpeed, Horovod) or NAME:N; # starts a comment."));
  schema.back().must_exist = true;
  schema.push_back(
      Long(Option("cluster.from", Type::kString, kRoot, "platform that lists the hosts in its variables"),
           "\"openmpi\", \"pmi\", \"mpijob\", \"azureml\", \"gcp\", \"vertex\", \"pai\", \"spark\", "
           "\"kubeflow\" or \"torchrun\"; or the name of a launcher that finds hosts: \"slurm\", \"pbs\", "
           "\"lsf\", "
           "\"gridengine\", \"flux\", \"sagemaker\", \"kubernetes\", or your own. \"auto\" takes the "
           "one that has set its own variables. Unless you set them, the platform also says which host this "
           "is, where host 0 "
           "is, and how many ranks each host has."));
  schema.push_back(Range(
      Long(Option("cluster.host_count", Type::kUint, kRoot, "number of hosts"),
           "The first ones of a list, a hostfile or an allocation; it is an error if that has fewer. With "
           "\"manual\" hosts need no names, only their number."),
      "1", "65536"));
  schema.push_back(
      Long(Option("cluster.include", Type::kString, kRoot, "hosts of the list that the job uses, with slots"),
           "As deepspeed's --include: NAME or NAME:SLOT,SLOT, with @ between hosts, as in "
           "worker-0:2,3@worker-1. A host keeps its place in the list and runs a rank for each slot that is "
           "chosen; its ranks see those slots as their GPUs (cluster.gpus). A name alone chooses all slots "
           "of the host. Without a list it may choose slots of localhost."));
  schema.push_back(Long(
      Option("cluster.exclude", Type::kString, kRoot, "hosts of the list, or slots, that the job leaves out"),
      "As deepspeed's --exclude, written as cluster.include; the two cannot be used together. Hosts "
      "that it does not name stay as they are."));
  schema.push_back(Long(
      Option("cluster.gpus", Type::kMap, kPlan, "GPUs of each host that its ranks see, by the host's name"),
      "For example { worker-0 = \"2,3\", worker-1 = \"0\" }: indices or UUIDs, as CUDA_VISIBLE_DEVICES "
      "takes them. All ranks of the host get the whole list in that variable (HIP_VISIBLE_DEVICES on "
      "AMD), in place of the one that dtrun was started with, and select by LOCAL_RANK; "
      "job.gpu_visibility = \"own\" deals it out, and job.processes_per_host = \"gpu\" counts it. Ranks of "
      "hosts that are not in the table see what they would see without it."));
  schema.push_back(Default(
      Long(Option("cluster.connect", Type::kString, kRoot, "how dtrun reaches the other hosts"),
           "\"ssh\" starts agents by cluster.remote_shell. The name of a launcher that connects starts "
           "them by its command, and is the default with cluster.from of that name: \"slurm\" by one "
           "srun in the allocation that dtrun runs in, \"lsf\" by blaunch, \"gridengine\" by qrsh "
           "-inherit, \"flux\" by flux exec. With \"manual\" something else starts the same dtrun "
           "command on every host, each with its own --host-index, and they join at cluster.root."),
      "ssh"));
  schema.push_back(Long(
      Option("cluster.root", Type::kString, kRoot, "where agents reach host 0, ADDRESS or ADDRESS:PORT"),
      "Needed for \"manual\", with a port. If unset, agents of \"ssh\" try the address that leads to the "
      "first other host, and all others of this machine."));
  schema.push_back(Range(Long(Option("cluster.root_port", Type::kUint, kRoot, "port where the root listens"),
                              "Used if cluster.root has no port. If unset, any free port "
                              "(cluster.port_range); on a platform with a port for the ranks, another "
                              "one, which all hosts derive from it."),
                         "1", "65535"));
  schema.push_back(Long(
      Option("cluster.port_range", Type::kString, kRoot, "ports that hosts listen on, FIRST-LAST"),
      "For firewalls that open a range. It holds for the control port, the connectivity check, MASTER_PORT, "
      "tasks' "
      "ports, Horovod's store, dtrun's gloo, and UCX, Open MPI, MPICH and libfabric's tcp. If unset, the "
      "system chooses; docs/networking.md lists what ignores the range."));
  schema.push_back(
      Range(Long(Option("cluster.host_index", Type::kUint, kRoot, "which of the hosts this one is"),
                 "For \"manual\"; as --host-index. Host 0 is the root."),
            "0", "65535"));
  schema.back().scope = DTRUN_SCOPE_HOST;
  schema.push_back(Long(
      Option("cluster.key_file", Type::kPath, kRoot, "file with the key that all hosts share"),
      "For \"manual\": 64 hex digits, as `openssl rand -hex 32` prints them, readable by its owner only. "
      "If unset, the key is in DTRUN_CLUSTER_KEY or the file ~/.dtrun/key. \"ssh\" makes a key for each "
      "job."));
  schema.back().must_exist = true;
  schema.push_back(
      Range(Long(Option("cluster.min_hosts", Type::kUint, kRoot, "fewest hosts that the job runs on"),
                 "If unset, all of them. With fewer, the job starts on the hosts that have joined when no "
                 "other one joins for cluster.last_call; it restarts on the others when a host is lost "
                 "(restart.max), and on all when one joins."),
            "1", "65536"));
  schema.push_back(Range(Default(Option("cluster.last_call", Type::kDuration, kRoot,
                                        "wait for more hosts once cluster.min_hosts have joined"),
                                 "30s"),
                         "0s", "24h"));
  schema.push_back(Range(
      Default(Option("cluster.join_timeout", Type::kDuration, kRoot, "longest wait for all hosts to join"),
              "5m"),
      "100ms", "24h"));
  schema.push_back(Range(Default(Option("cluster.lost_after", Type::kDuration, kRoot,
                                        "silence after which root and agent consider each other lost"),
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

Spec Sha256(const char* key, Type type) {
  return Long(Option(key, type, kPlugins, "the only content the plugin file may have; any by default"),
              "What `sha256sum FILE` prints. On every host, a file that differs is not loaded. In a list of "
              "backends, one with another file is skipped.");
}

void AddPlugins(Schema& schema) {
  schema.push_back(Default(Option("launcher.name", Type::kString, kPlugins,
                                  "how ranks are launched; dtrun plugins list shows the choices"),
                           "per-process"));
  schema.push_back(
      Option("launcher.path", Type::kPath, kPlugins, "launcher plugin file, instead of a search by name"));
  schema.push_back(Sha256("launcher.sha256", Type::kString));
  schema.push_back(Long(
      Default(Option("backend.name", Type::kNames, kPlugins,
                     "transport of the communicator; dtrun plugins list shows the choices"),
              "gloo"),
      "\"none\" starts the ranks without a communicator and ignores backend.options. Of a list, such as "
      "[\"nccl\", \"ucx\", \"gloo\"], dtrun takes for each kind of memory the first that moves it and that "
      "all hosts can use; \"auto\" is that list. \"cpu:gloo,cuda:nccl\" names one for each; the words are "
      "cpu, cuda, hip or rocm, xpu, and names of device plugins. Beside a backend of device memory alone, "
      "such as \"nccl\", the host's memory goes by the first of ucx and gloo. Put the options of each into a "
      "table of its name, such as [backend.gloo]. A single name never falls back to another."));
  schema.push_back(
      Option("backend.path", Type::kPath, kPlugins, "backend plugin file, instead of a search by name"));
  schema.push_back(Sha256("backend.sha256", Type::kNames));
  schema.back().long_doc +=
      " A job with several backends, or with a device plugin, needs a list with one for each of their files.";
  schema.push_back(Choices(
      Default(Long(Option("backend.staging", Type::kEnum, kCommunicator,
                          "device memory through the host's, where no backend moves it"),
                   "\"auto\": such operations are copied to host memory and back in pieces, and go over the "
                   "host's backend. \"off\": they are errors; a job that names a backend of device memory "
                   "which cannot be used then ends before it starts."),
              "auto"),
      {"auto", "off"}));
  schema.push_back(Choices(
      Default(
          Long(
              Option("backend.torch", Type::kEnum, kCommunicator,
                     "what torch.distributed uses in Python programs that ask for gloo or nothing"),
              "\"script\": what the program asks for, such as gloo. \"dtrun\": this communicator, without a "
              "change of the program; its Python needs torch 2.5 or later and the dtrun package, which torch "
              "then loads by itself."),
          "script"),
      {"script", "dtrun"}));
  schema.push_back(Range(Default(Option("backend.timeout", Type::kDuration, kCommunicator,
                                        "longest wait for peers in one operation"),
                                 "60s"),
                         "1ms", "24h"));
  schema.push_back(Scope(Option("plugins.path", Type::kPathList, kPlugins,
                                "folders searched for plugins, before the installed ones"),
                         DTRUN_SCOPE_HOST));
  schema.back().must_exist = true;
}

void AddComm(Schema& schema) {
  schema.push_back(Choices(
      Default(Long(Option("comm.local", Type::kEnum, kCommunicator, "transport between ranks on one host"),
                   "\"shm\" is shared memory, with the backend between hosts; if ranks of a host cannot "
                   "share memory, as in containers of their own, all use the backend. \"none\" uses the "
                   "backend alone."),
              "shm"),
      {"shm", "none"}));
  schema.push_back(
      Range(Default(Long(Option("comm.emulate_hosts", Type::kUint, kCommunicator,
                                "for tests: simulated hosts to split the ranks of one host over"),
                         "Ranks are split in order, as evenly as possible. Shared memory then connects only "
                         "the ranks of one simulated host, and the backend connects these hosts."),
                    "1"),
            "1", "4096"));
}

void AddNetwork(Schema& schema) {
  schema.push_back(Default(
      Long(
          Option("network.interface", Type::kString, kAgent, "interfaces that may connect the hosts"),
          "\"auto\" tests which interfaces connect the hosts before ranks start, and takes the fastest. Or a "
          "list, separated by commas: names or prefixes of names (\"eth0,ens\"), exact names (\"=eth0\"), "
          "addresses and networks (\"10.0.0.0/16\"); each host uses those it has, and they are tested too. "
          "\"^docker\" excludes. \"off\" leaves the choice to the libraries."),
      "auto"));
  schema.push_back(
      Long(Option("network.interface_on", Type::kMap, kAgent, "network.interface of single hosts, by name"),
           "For example { node1 = \"ens3\" }; the other hosts keep network.interface."));
}

void AddRestart(Schema& schema) {
  schema.push_back(Range(
      Default(Long(Option("restart.max", Type::kUint, kAgent, "how often dtrun restarts a failed job"),
                   "All ranks restart, with a new generation (DTRUN_GENERATION), a new port and an empty "
                   "store."),
              "0"),
      "0", "1000000"));
  schema.push_back(
      Range(Default(Long(Option("restart.backoff", Type::kDuration, kAgent, "wait before the second restart"),
                         "The first restart comes at once; the wait doubles each time, up to a minute."),
                    "1s"),
            "0s", "1h"));
  schema.push_back(Default(
      Long(Option("restart.on", Type::kList, kAgent, "classes of failures that are worth a restart"),
           "\"user-error\": the program failed by itself. \"signal\": it was killed. \"out-of-memory\": the "
           "kernel killed it, or it could not allocate memory. \"rendezvous\": a peer never joined. "
           "\"network\": a peer was lost. \"hang\": a rank made no progress until another one timed out. "
           "\"launcher\": a process of dtrun that ranks needed was lost, such as a host's PMIx server."),
      "user-error,signal,out-of-memory,rendezvous,network,hang,launcher"));
}

void AddWatch(Schema& schema) {
  schema.push_back(Default(
      Long(
          Option("watch.stall", Type::kString, kAgent,
                 "time without progress after which dtrun says which ranks wait, and where"),
          "A duration, or \"off\". A job makes no progress when no rank prints, calls a collective "
          "that dtrun records, reads, writes or gets to another place, and at least one is not "
          "computing. Ranks that wait for each other in different collectives, and do nothing else, are told "
          "of within half a minute. Stacks are in stacks.txt in the run directory."),
      "10m"));
  schema.push_back(Choices(
      Default(
          Long(Option("watch.on_stall", Type::kEnum, kAgent, "what to do with a job without progress"),
               "\"report\": it continues. \"fail\": dtrun ends it, with class \"hang\", when no rank has "
               "made progress or computed for that long: the others may be waiting for one that computes."),
          "report"),
      {"report", "fail"}));
}

void AddFailures(Schema& schema) {
  schema.push_back(Scope(
      Long(Option("failures.path", Type::kPathList, kRoot, "files with known failures of your own"),
           "TOML, each failure as [[failure]] with id, texts, what and fix; docs/failures.md has an "
           "example. They take precedence over dtrun's own. A file that dtrun cannot read, or not whole, is "
           "an error before the job starts."),
      DTRUN_SCOPE_HOST));
  schema.back().must_exist = true;
}

void AddLogs(Schema& schema) {
  schema.push_back(
      Scope(Long(Default(Option("logs.dir", Type::kString, kAgent, "folder of one run, with a log per rank"),
                         "runs/{job}/{time}"),
                 "Relative to the folder where dtrun was started; ~ and ${NAME} expand. {job} is the job's "
                 "name, {time} the "
                 "start of the run. Without {time} runs reuse the folder: dtrun moves the files of the "
                 "previous run into a folder before-TIME in it, and refuses two jobs at the same time. If the "
                 "default folder cannot be written, dtrun warns and uses ~/.local/state/dtrun/runs."),
            DTRUN_SCOPE_HOST));
  schema.push_back(Scope(
      Long(Default(Option("logs.mode", Type::kString, kAgent, "who may read the folder of a run"), "private"),
           "\"private\": only you; \"group\": the folder's group too; \"all\": everybody; or the folder's "
           "mode as an octal number, such as \"0750\". Files get the same mode without the right to "
           "execute. The umask has no effect."),
      DTRUN_SCOPE_HOST));
  schema.push_back(Scope(
      Long(Option("logs.dir_file", Type::kPath, kAgent, "file that gets the path of the folder of a run"),
           "For programs that start dtrun and read the verdict. Written, or replaced, before ranks start."),
      DTRUN_SCOPE_HOST));
}

// How the user sees the ranks' output; does not affect the ranks.
void AddOutput(Schema& schema) {
  const auto add = [&](Spec spec) { schema.push_back(Scope(std::move(spec), DTRUN_SCOPE_PROCESS)); };
  add(Long(
      Default(Option("output.ranks", Type::kString, kRoot, "ranks that print to your terminal"), "all"),
      "\"all\", \"none\", or ranks and ranges, such as \"0\" or \"0,4-7\". The log files have the output of "
      "every rank, and the verdict quotes the rank that failed."));
  add(Long(
      Default(Option("output.fold", Type::kBool, kRoot, "print equal lines of several ranks once"), "false"),
      "\"[0-7] loading\" instead of eight lines. A line waits until every rank has printed it or gone on, "
      "250 ms at most; lines of one rank keep their order."));
  add(Long(
      Choices(Default(Renamed(Option("output.prefix", Type::kEnum, kRoot, "prefix of each line of output"),
                              "logs.prefix"),
                      "auto"),
              {"auto", "rank", "host", "none"}),
      "\"auto\" is the rank if there are several, else nothing; \"host\" is rank and host."));
  add(Long(Default(Option("output.timestamps", Type::kBool, kRoot, "put the time before each line of output"),
                   "false"),
           "Local time of the host where you started dtrun, when it read the line."));
  add(Long(
      Choices(Default(Option("output.color", Type::kEnum, kRoot, "color prefixes, warnings and the verdict"),
                      "auto"),
              {"auto", "always", "never"}),
      "\"auto\" colors a terminal, unless NO_COLOR is set. As --color."));
}

Schema All() {
  Schema schema;
  AddJob(schema);
  AddCluster(schema);
  AddPlugins(schema);
  AddPython(schema);
  AddComm(schema);
  AddNetwork(schema);
  AddRestart(schema);
  AddWatch(schema);
  AddFailures(schema);
  AddLogs(schema);
  AddOutput(schema);
  return schema;
}

}  // namespace
}  // namespace rows

const options::Schema& CoreSchema() {
  static const options::Schema kSchema = rows::All();
  return kSchema;
}

}  // namespace dtrun::config
