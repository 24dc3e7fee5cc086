// The options of [job] and [cluster], in the order of the manual page. Part of core/spec/job_spec.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/options/value.h"

namespace dtrun::spec {

// An option of dtrun as a typed field: its row in the schema, its value, and the value's origin.
//
// A field is declared once, in core/spec/tables.h or core/spec/job_spec.h, with its row:
//   TextField name = Row("job.name", kRoot, "name of the job").Default("train");
// Schema, validation, `config explain` and docs/options.md come from that row. Values; any thread.

// The readers of options.
inline constexpr char kRoot[] = "dtrun";
inline constexpr char kPlan[] = "plan";
inline constexpr char kAgent[] = "agent";
inline constexpr char kCommunicator[] = "communicator";
inline constexpr char kPlugins[] = "plugin loader";

// The row of an option that is being declared.
struct Row {
  Row(const char* key, const char* reader, const char* doc) {
    spec.key = key;
    spec.reader = reader;
    spec.doc = doc;
    spec.since = "0.1";
  }
  Row& Long(const char* text) { return spec.long_doc = text, *this; }
  Row& Default(const char* text) { return spec.default_text = text, *this; }
  Row& Range(const char* min, const char* max) { return spec.min_text = min, spec.max_text = max, *this; }
  Row& Choices(std::vector<std::string> words) { return spec.choices = std::move(words), *this; }
  Row& Unit(const char* unit) { return spec.unit = unit, *this; }
  Row& Renamed(const char* former_key) { return spec.former_key = former_key, *this; }
  Row& Scope(int scope) { return spec.scope = scope, *this; }
  Row& Required() { return spec.required = true, *this; }
  Row& MustExist() { return spec.must_exist = true, *this; }
  Row& MustBeFolder() { return spec.must_be_folder = true, MustExist(); }

  options::Spec spec;
};

class AnyField {
 public:
  const options::Spec& row() const;
  const std::string& key() const { return row().key; }
  bool has() const { return value.set(); }
  // Whether the config sets it; false: it has its default.
  bool given() const { return value.origin.kind != DTRUN_ORIGIN_DEFAULT; }
  const std::string& place() const { return value.origin.place; }
  // Whether the value is this word.
  bool is(std::string_view word) const {
    const auto* text = as<std::string>();
    return text != nullptr && *text == word;
  }
  // Null if the value has another type, or there is none.
  template <class T>
  const T* as() const {
    return std::get_if<T>(&value.data);
  }

  options::Value value;

 protected:
  AnyField(Row&& row, options::Type type);

 private:
  std::size_t index_;  // in CoreSchema()
};

template <options::Type kType, class T>
class Field : public AnyField {
 public:
  Field(Row& row) : AnyField(std::move(row), kType) {}   // NOLINT(google-explicit-constructor): a declaration
  Field(Row&& row) : AnyField(std::move(row), kType) {}  // NOLINT(google-explicit-constructor)

  // REQUIRES: has(); a violation ends the process.
  decltype(auto) operator*() const {
    if constexpr (std::is_same_v<T, std::chrono::nanoseconds>) {
      return T(Stored<std::int64_t>());
    } else {
      return Stored<T>();
    }
  }
  const T* operator->() const { return &Stored<T>(); }
  T value_or(T otherwise) const { return has() ? T(**this) : std::move(otherwise); }

 private:
  template <class Data>
  const Data& Stored() const {
    const auto* data = as<Data>();
    if (data == nullptr) std::abort();
    return *data;
  }
};

using TextField = Field<options::Type::kString, std::string>;
using EnumField = Field<options::Type::kEnum, std::string>;
using PathField = Field<options::Type::kPath, std::string>;
using ListField = Field<options::Type::kList, std::vector<std::string>>;
using PathsField = Field<options::Type::kPathList, std::vector<std::string>>;
using MapField = Field<options::Type::kMap, std::map<std::string, std::string>>;
using BoolField = Field<options::Type::kBool, bool>;
using UnsignedField = Field<options::Type::kUint, std::int64_t>;
using BytesField = Field<options::Type::kBytes, std::int64_t>;
using TimeField = Field<options::Type::kDuration, std::chrono::nanoseconds>;
using CountField = Field<options::Type::kCount, std::int64_t>;  // a number, or a word: see is()
using NamesField = Field<options::Type::kNames, std::string>;   // a name, or a list: see as()

// Rows of options: their texts are wrapped by hand, from here to the end.
// clang-format off
struct JobTable {
  TextField name = Row("job.name", kRoot, "name of the job in logs and folders")
                       .Long("1 to 64 of the characters A-Z a-z 0-9 . _ -. If unset: the name of the config file "
                             "without its extension; without a config file, the name of the script (train for "
                             "train.py) or of a program typed with its folder (train for ./train, not for "
                             "/usr/bin/train); otherwise \"job\".");
  ListField command =
      Row("job.command", kPlan, "program and arguments of every rank")
          .Long("Any program. ${RANK}, ${LOCAL_RANK}, ${WORLD_SIZE} and other variables of the rank expand per "
                "rank; write $${ for a literal ${. Nothing else is expanded. A .py file that is not executable "
                "runs with python3. Relative paths start at the rank's working folder, job.cwd. A program on the "
                "command line replaces this option.")
          .Required();
  CountField processes_per_host =
      Row("job.processes_per_host", kPlan, "ranks on each host")
          .Long("\"cpu\" starts one rank per core, \"gpu\" one per GPU that CUDA_VISIBLE_DEVICES and similar "
                "variables leave visible; \"auto\" counts GPUs if there are any, otherwise cores.")
          .Default("1")
          .Range("1", "4096")
          .Choices({"cpu", "gpu", "auto"})
          .Unit("processes");
  UnsignedField ranks =
      Row("job.ranks", kRoot, "number of ranks on all hosts together")
          .Long("As -n of mpirun and srun. dtrun fills the hosts in order, each up to its slots, and up to "
                "job.processes_per_host if both options are set in the same place. Hosts without slots get equal "
                "shares. Hosts without a rank are left out. If unset, every host runs one rank per slot, or "
                "job.processes_per_host ranks.")
          .Range("1", "1000000");
  EnumField bind =
      Row("job.bind", kPlan, "processors that each rank may run on")
          .Long("\"compact\": an equal share of whole cores, with neighbouring ranks side by side. \"spread\": the "
                "same shares, with neighbouring ranks on different NUMA nodes. \"per-numa\" and \"per-socket\": "
                "every NUMA node or socket that the rank's share touches. \"core\": one core of the share. \"none\": "
                "every processor that dtrun itself may use. \"auto\" is \"per-numa\" on a host with several NUMA "
                "nodes and at least one core per rank, otherwise \"none\". No policy gives a rank more processors "
                "than dtrun itself may use.")
          .Default("auto")
          .Choices({"auto", "none", "compact", "spread", "per-numa", "per-socket", "core"});
  EnumField gpu_visibility =
      Row("job.gpu_visibility", kPlan, "GPUs that each rank sees")
          .Long("\"all\" changes nothing: a program selects its GPU by LOCAL_RANK. \"own\" sets "
                "CUDA_VISIBLE_DEVICES (HIP_VISIBLE_DEVICES on AMD) to the rank's share of the visible GPUs, so a "
                "program uses device 0.")
          .Default("all")
          .Choices({"all", "own"});
  MapField env = Row("job.env", kPlan, "environment variables of every rank")
                     .Long("Added to the environment that dtrun was started with. Numbers, true and false become "
                           "text; placeholders expand as in job.command.");
  ListField dialects = Row("job.dialects", kPlan, "other launchers; every rank also gets their environment variables")
                           .Long("For example [\"horovod\", \"azureml\"], in addition to the variables of dtrun's "
                                 "own launcher; dtrun env --list shows them. Two dialects that set a variable to "
                                 "different values are an error.");
  MapField roles = Row("job.roles", kPlan, "number of ranks in the roles chief, worker, ps and evaluator")
                       .Long("For example { chief = 1, worker = 2, ps = 1 }; the numbers must add up to the number "
                             "of ranks. Roles are assigned from rank 0 on in the order chief, worker, ps, "
                             "evaluator, whatever the order of the table. Used by job.success and by the dialects "
                             "tf-config and torchrun; ROLE_NAME is set only with \"torchrun\" in job.dialects.");
  NamesField success =
      Row("job.success", kPlan, "ranks that must succeed: all, or those of some roles")
          .Long("\"all\", \"chief\", or a list of roles of job.roles such as [\"chief\", \"evaluator\"]. Once "
                "every rank of these roles has exited with 0, dtrun ends the other ranks, and the job has "
                "succeeded. Until then the failure of any rank fails the job. \"auto\" is \"all\"; in a job with "
                "parameter servers, which never end by themselves, it is the chief, or the workers if there is no "
                "chief.")
          .Default("auto");
  PathField cwd = Row("job.cwd", kPlan, "working folder of every rank")
                      .Long("If unset, the folder where dtrun was started, not that of the config file; \".\" is the "
                            "folder of the config file.")
                      .MustExist();
  TimeField grace = Row("job.grace", kAgent, "time between the first signal to a rank and SIGKILL")
                        .Default("10s")
                        .Range("0s", "1h");
  TimeField time_limit =
      Row("job.time_limit", kAgent, "longest time that the job may take")
          .Long("Counts from the start of the job and includes the time in which hosts join, and all restarts. At "
                "the limit dtrun saves the ranks' stacks, ends all ranks, and exits with 124, as timeout(1) does. "
                "If unset, there is no limit.")
          .Range("1s", "87600h");
  BytesField memory =
      Row("job.memory", kAgent, "memory that the ranks of each host may use together")
          .Long("Enforced by a cgroup (v2), without swap. If dtrun cannot create the cgroup, the job does not start, "
                "and dtrun says why. At the limit the kernel kills a rank, and the verdict reports it. If unset, "
                "there is no limit.")
          .Range("16MiB", "1024TiB");
  UnsignedField master_port =
      Row("job.master_port", kAgent, "port where rank 0 may listen (MASTER_PORT)")
          .Long("0 takes any free port. dtrun holds the port until rank 0 listens, so that no other program gets it "
                "by chance. A program that asks for this port with SO_REUSEADDR can still listen there first; if "
                "ranks fail, dtrun names that program.")
          .Default("0")
          .Range("0", "65535");
  EnumField pmi =
      Row("job.pmi", kPlan, "PMI service for MPI programs that start without mpirun")
          .Long("An MPI library in the ranks finds its peers through this service. \"pmix\" is for Open MPI, "
                "\"pmi1\" for MPICH, Intel MPI and MVAPICH. \"auto\" serves what the mpi backend needs or what the "
                "program is linked with. For a program that an interpreter starts, choose \"pmix\" or \"pmi1\". "
                "With the mpirun launcher it is \"none\".")
          .Default("auto")
          .Choices({"auto", "pmix", "pmi1", "none"});
  EnumField isolated_ranks =
      Row("job.isolated_ranks", kAgent, "reaction if ranks train alone instead of joining each other")
          .Long("Ranks that load PyTorch, TensorFlow, JAX or an MPI library but never join each other each train on "
                "the whole data set, and all of them succeed. \"warn\" prints a warning when dtrun detects it; "
                "\"fail\" ends the job as failed; \"allow\" does not check. dtrun may miss it in jobs of a few "
                "seconds.")
          .Renamed("job.lone_worlds")
          .Default("warn")
          .Choices({"warn", "fail", "allow"});
};

struct ClusterTable {
  ListField hosts = Row("cluster.hosts", kPlan, "hosts of the job, each NAME or NAME:SLOTS")
                        .Long("Ranks are numbered along the list. A host runs one rank per slot, or "
                              "job.processes_per_host ranks. Without this list, a hostfile or a platform, the job "
                              "runs on this machine alone.");
  PathField hostfile = Row("cluster.hostfile", kRoot, "file with the hosts, one per line")
                           .Long("NAME, NAME slots=N (Open MPI, DeepSpeed, Horovod) or NAME:N; # starts a comment.")
                           .MustExist();
  TextField from =
      Row("cluster.from", kRoot, "platform that lists the hosts in its environment variables")
          .Long("\"openmpi\", \"pmi\", \"mpijob\", \"azureml\", \"gcp\", \"vertex\", \"pai\", \"spark\", "
                "\"kubeflow\" or \"torchrun\"; or the name of a launcher that finds hosts: \"slurm\", \"pbs\", "
                "\"lsf\", \"gridengine\", \"flux\", \"sagemaker\", \"kubernetes\", or a plugin of your own. "
                "\"auto\" takes the platform that has set its variables. The platform also gives the number of this "
                "host, the address of host 0 and the ranks of each host, unless you set these options.");
  UnsignedField host_count = Row("cluster.host_count", kRoot, "number of hosts")
                               .Long("The first hosts of a list, a hostfile or an allocation; it is an error if there "
                                     "are fewer. With cluster.connect = \"manual\" the hosts need no names, only "
                                     "their number.")
                               .Range("1", "65536");
  TextField include =
      Row("cluster.include", kRoot, "hosts of the list that the job uses, with slots")
          .Long("As deepspeed's --include: NAME or NAME:SLOT,SLOT, with @ between hosts, as in "
                "worker-0:2,3@worker-1. A host keeps its place in the list and runs one rank per chosen slot; its "
                "ranks see those slots as their GPUs (cluster.gpus). A name alone chooses all slots of the host. "
                "Without a list you may choose slots of localhost.");
  TextField exclude = Row("cluster.exclude", kRoot, "hosts of the list, or slots, that the job leaves out")
                          .Long("As deepspeed's --exclude, in the notation of cluster.include; set only one of the "
                                "two. Hosts that it does not name are unchanged.");
  MapField gpus =
      Row("cluster.gpus", kPlan, "GPUs that the ranks of each host see, by host name")
          .Long("For example { worker-0 = \"2,3\", worker-1 = \"0\" }: indices or UUIDs, as in "
                "CUDA_VISIBLE_DEVICES. All ranks of the host get the whole list in that variable "
                "(HIP_VISIBLE_DEVICES on AMD), which replaces the one in dtrun's environment, and select by "
                "LOCAL_RANK. job.gpu_visibility = \"own\" splits the list, and job.processes_per_host = \"gpu\" "
                "counts it. Hosts that are not in the table are unchanged.");
  TextField connect =
      Row("cluster.connect", kRoot, "how dtrun starts its agents on the other hosts")
          .Long("\"ssh\" starts agents with cluster.remote_shell. The name of a launcher that connects starts them "
                "with that launcher's command, and is the default if cluster.from names it: \"slurm\" uses one srun "
                "in the allocation that dtrun runs in, \"lsf\" blaunch, \"gridengine\" qrsh -inherit, \"flux\" flux "
                "exec. With \"manual\" you or a scheduler start the same dtrun command on every host, each with its "
                "own --host-index, and they join at cluster.root.")
          .Default("ssh");
  TextField root =
      Row("cluster.root", kRoot, "address of host 0 for the other hosts, ADDRESS or ADDRESS:PORT")
          .Long("Required, with a port, for cluster.connect = \"manual\". If unset, agents started by ssh try the "
                "address of host 0 on the route to the first other host, then its other addresses.");
  UnsignedField root_port =
      Row("cluster.root_port", kRoot, "port where host 0 listens for the other hosts")
          .Long("Used if cluster.root has no port. If unset, any free port in cluster.port_range; on a platform that "
                "gives a port for the ranks, all hosts derive this one from it.")
          .Range("1", "65535");
  TextField port_range =
      Row("cluster.port_range", kRoot, "ports that hosts listen on, FIRST-LAST")
          .Long("For firewalls that open a range. It applies to the control port, the connectivity check, "
                "MASTER_PORT, tasks' ports, Horovod's store, dtrun's gloo, and UCX, Open MPI, MPICH and libfabric's "
                "tcp. If unset, the system chooses. docs/networking.md lists what ignores the range.");
  UnsignedField host_index = Row("cluster.host_index", kRoot, "number of this host, from 0")
                               .Long("For cluster.connect = \"manual\"; the same as --host-index. Host 0 is the root.")
                               .Range("0", "65535")
                               .Scope(DTRUN_SCOPE_HOST);
  PathField key_file =
      Row("cluster.key_file", kRoot, "file with the key that all hosts share")
          .Long("For cluster.connect = \"manual\": 64 hex digits, as `openssl rand -hex 32` prints them, readable by "
                "its owner only. If unset, the key is in DTRUN_CLUSTER_KEY or the file ~/.dtrun/key. With \"ssh\" "
                "dtrun makes a key for each job.")
          .MustExist();
  UnsignedField min_hosts =
      Row("cluster.min_hosts", kRoot, "number of hosts that is enough to start or continue the job")
          .Long("If unset, all hosts must join. Otherwise the job starts without the missing hosts when this many "
                "have joined and no other host joins for cluster.last_call. If a host is lost, the job restarts on "
                "the remaining ones (restart.max); if one joins later, it restarts on all.")
          .Range("1", "65536");
  TimeField last_call =
      Row("cluster.last_call", kRoot, "wait for more hosts after cluster.min_hosts have joined")
          .Default("30s")
          .Range("0s", "24h");
  TimeField join_timeout = Row("cluster.join_timeout", kRoot, "longest wait for all hosts to join")
                               .Default("5m")
                               .Range("100ms", "24h");
  TimeField lost_after = Row("cluster.lost_after", kRoot, "silence after which root and agent consider each other lost")
                             .Default("10s")
                             .Range("500ms", "1h");
  ListField remote_shell =
      Row("cluster.remote_shell", kRoot, "command that runs another command on a host")
          .Long("dtrun appends the host's name and the command. It has no terminal, so ssh must log in without a "
                "prompt.")
          .Default("ssh,-o,BatchMode=yes,-o,ConnectTimeout=10");
  TextField dtrun =
      Row("cluster.dtrun", kRoot, "path of dtrun on the other hosts; unset: the path of the dtrun you started");
  BoolField oversubscribe = Row("cluster.oversubscribe", kPlan, "allow more ranks on a host than it has slots")
                                .Long("Also allows several hosts of the list to be the same machine.")
                                .Default("false");
};

}  // namespace dtrun::spec
