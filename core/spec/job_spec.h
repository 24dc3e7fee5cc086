// The validated config of a job: every option of dtrun as a typed field with its origin, and the options of
// the chosen plugins.
//
// Read once per launch (core/spec/read.h) and not changed afterwards; any thread may read it. A new option is
// one line here or in core/spec/tables.h.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/endpoint.h"
#include "core/hosts/host_slots.h"
#include "core/options/snapshot.h"
#include "core/spec/tables.h"

namespace dtrun::spec {

// The same option for both kinds of plugins.
inline Row Sha256(const char* key, const char* more = "") {
  Row row(key, kPlugins, "SHA-256 that the plugin file must have; unset: any file is loaded");
  row.spec.long_doc = std::string(
                          "As `sha256sum FILE` prints it. Each host checks its own file, and does not load a "
                          "file with another sum. In a list of backends, such a backend is skipped.") +
                      more;
  return row;
}

// Rows of options: their texts are wrapped by hand, from here to the end.
// clang-format off
struct LauncherTable {
  TextField name = Row("launcher.name", kPlugins, "how ranks are launched; dtrun plugins list shows the launchers")
                       .Default("per-process");
  PathField path = Row("launcher.path", kPlugins, "file of the launcher plugin, libdtrun_launcher_NAME.so; unset: it is found by its name");
  TextField sha256 = Sha256("launcher.sha256");
};

struct BackendTable {
  NamesField name =
      Row("backend.name", kPlugins, "backend of the communicator; dtrun plugins list shows the backends")
          .Long("A single name, such as \"gloo\", never falls back to another backend. From a list, such as [\"nccl\", "
                "\"ucx\", \"gloo\"], dtrun takes the first backend that supports the memory and works on all hosts. It "
                "chooses separately for host and for device memory. \"auto\" is that list. \"cpu:gloo,cuda:nccl\" "
                "names one backend for each kind of memory: cpu, cuda, hip or rocm, xpu, or the name of a device "
                "plugin. A backend for device memory only, such as \"nccl\", is combined with ucx or gloo for host "
                "memory. Options of a backend go into a table of its name, such as [backend.gloo]. \"none\" starts the "
                "ranks without a communicator and ignores backend.options.")
          .Default("gloo");
  PathField path = Row("backend.path", kPlugins, "file of the backend plugin, libdtrun_backend_NAME.so; unset: it is found by its name");
  NamesField sha256 =
      Sha256("backend.sha256",
             " A job with several backends, or with a device plugin, needs a list with the sum of each file.");
  EnumField staging =
      Row("backend.staging", kCommunicator, "copy device memory through host memory if no backend supports it")
          .Long("\"auto\": the communicator copies such buffers to host memory and back in pieces, and the backend "
                "for host memory transfers them. \"off\": such operations are errors; if backend.name names a "
                "backend for device memory that cannot be used, the job does not start.")
          .Default("auto")
          .Choices({"auto", "off"});
  EnumField torch =
      Row("backend.torch", kCommunicator, "what torch.distributed uses if a program asks for gloo or for no backend")
          .Long("\"script\": what the program asks for, such as gloo. \"dtrun\": dtrun's communicator, without a "
                "change of the program; its Python needs torch 2.5 or later and the dtrun package, which torch then "
                "loads by itself.")
          .Default("script")
          .Choices({"script", "dtrun"});
  TimeField timeout = Row("backend.timeout", kCommunicator, "longest wait for peers in one operation")
                          .Default("60s")
                          .Range("1ms", "24h");
};

struct PluginsTable {
  PathsField path = Row("plugins.path", kPlugins, "folders searched for plugins, before the installed ones")
                        .Scope(DTRUN_SCOPE_HOST)
                        .MustBeFolder();
};

struct PythonTable {
  ListField modules =
      Row("python.modules", kRoot, "Python modules that every host must have")
          .Long("For example [\"torch\", \"numpy\"]. Before ranks start, the interpreter of job.command looks for each "
                "of them on every host, without importing it. If one is missing, the job does not start, and dtrun "
                "names host, module and interpreter.");
  EnumField horovod =
      Row("python.horovod", kPlan, "what `import horovod` loads in Python programs")
          .Long("\"script\": Horovod, where it is installed. \"shim\": Horovod's API for torch, TensorFlow and Keras "
                "over dtrun's communicator, so backend.name must not be \"none\"; dtrun puts the folder of its package "
                "first on PYTHONPATH.")
          .Default("script")
          .Choices({"script", "shim"});
};

struct CommTable {
  EnumField local = Row("comm.local", kCommunicator, "transport between ranks on one host")
                        .Long("\"shm\" is shared memory, with the backend between hosts; if ranks of a host cannot "
                              "share memory, for example because each has its own container, all ranks use the "
                              "backend. \"none\" uses only the backend.")
                        .Default("shm")
                        .Choices({"shm", "none"});
  UnsignedField emulate_hosts =
      Row("comm.emulate_hosts", kCommunicator, "for tests: number of simulated hosts to split the ranks of one host over")
          .Long("Ranks are split in order, as evenly as possible. Shared memory then connects only the ranks of one "
                "simulated host, and the backend connects these hosts.")
          .Default("1")
          .Range("1", "4096");
};

struct NetworkTable {
  TextField interface =
      Row("network.interface", kAgent, "network interfaces that may connect the hosts")
          .Long("\"auto\": before ranks start, dtrun tests which interfaces connect the hosts, and takes the fastest. "
                "A list, separated by commas, limits the choice: names or prefixes of names (\"eth0,ens\"), exact "
                "names (\"=eth0\"), addresses and networks (\"10.0.0.0/16\"); each host tests those that it has. "
                "\"^docker\" excludes. \"off\" leaves the choice to the libraries.")
          .Default("auto");
  MapField interface_on = Row("network.interface_on", kAgent, "network.interface of single hosts, by host name")
                              .Long("For example { node1 = \"ens3\" }; the other hosts use network.interface.");
};

struct RestartTable {
  UnsignedField max = Row("restart.max", kAgent, "how often dtrun restarts a failed job")
                        .Long("All ranks restart, with a new generation (DTRUN_GENERATION), a new port and an empty "
                              "store.")
                        .Default("0")
                        .Range("0", "1000000");
  TimeField backoff = Row("restart.backoff", kAgent, "wait before the second restart")
                          .Long("The first restart is immediate; the wait doubles with each restart, up to a minute.")
                          .Default("1s")
                          .Range("0s", "1h");
  ListField on =
      Row("restart.on", kAgent, "classes of failures after which the job restarts")
          .Long("\"user-error\": the program failed by itself. \"signal\": it was killed. \"out-of-memory\": the kernel "
                "killed it, or it could not allocate memory. \"rendezvous\": a peer never joined. \"network\": a peer "
                "was lost. \"hang\": a rank made no progress until another one timed out. \"launcher\": a process of "
                "dtrun that ranks needed was lost, such as a host's PMIx server. \"plugin\": a plugin crashed, hung or "
                "ended a rank.")
          .Default("user-error,signal,out-of-memory,rendezvous,network,hang,launcher,plugin");
};

struct WatchTable {
  TextField stall =
      Row("watch.stall", kAgent, "time without progress after which dtrun reports where ranks wait")
          .Long("A duration, or \"off\". A job makes progress while any rank prints, calls a collective that dtrun "
                "records, reads or writes, moves to another place in its program, or while all ranks compute. dtrun "
                "reports ranks that wait for each other in different collectives within half a minute. The stacks "
                "are in stacks.txt in the run directory.")
          .Default("10m");
  EnumField on_stall =
      Row("watch.on_stall", kAgent, "reaction to a job without progress")
          .Long("\"explain\": dtrun says once for each stall where the ranks are and which ones the others wait for, as "
                "dtrun explain does, and the job continues. \"fail\": it also ends the job with class \"hang\", "
                "without a restart. \"restart\": it also ends the ranks with class \"hang\" and restarts them "
                "if restart.max and restart.on allow it; else the job fails. Both end ranks only once no rank has "
                "made progress or computed for the time in watch.stall. While a rank computes, the others may be "
                "waiting for it.")
          .Default("explain")
          .Choices({"explain", "fail", "restart"});
  BoolField stragglers =
      Row("watch.stragglers", kAgent, "sample the ranks, to name at the end one that made the others wait")
          .Long("The agents look at their ranks four times a second, and after each doubling of the first minute half as "
                "often, from outside and without stopping them. The verdict names a rank only if the samples leave no "
                "doubt. A look at a rank with torch takes 0.4 ms of a processor: 0.2 % of one in the first minute, 0.02 % "
                "after eight minutes. If false, nothing is sampled.")
          .Default("true");
};

struct MetricsTable {
  TextField listen =
      Row("metrics.listen", kAgent, "address and port where dtrun serves the numbers of the job, ADDRESS:PORT")
          .Long("OpenMetrics over HTTP, at /metrics, for Prometheus and others, while the job runs. Such as "
                "\"127.0.0.1:9400\"; port 0 is any free one. An address that is not loopback needs "
                "metrics.token_file. If unset, dtrun does not listen. metrics.jsonl in the run directory has the "
                "numbers in any case.")
          .Scope(DTRUN_SCOPE_HOST);
  PathField token_file =
      Row("metrics.token_file", kAgent, "file with the token that clients of metrics.listen send")
          .Long("At least 16 characters, as `openssl rand -hex 32` prints them, readable by its owner only. Clients "
                "send \"Authorization: Bearer TOKEN\". On loopback without a token every user of the host may read "
                "the numbers.")
          .Scope(DTRUN_SCOPE_HOST)
          .MustExist();
};

struct TraceTable {
  BoolField enabled =
      Row("trace.enabled", kCommunicator, "note every call on a communicator, for dtrun trace")
          .Long("Of programs that use libdtrun: dtrun's own collectives in C, C++ and Python, --torch-backend dtrun, "
                "dtrun.horovod. Each rank's calls, with sizes and times, go to rank-N.trace in the run directory while "
                "the job runs.")
          .Default("false");
  BytesField size = Row("trace.size", kCommunicator, "largest trace of one rank")
                        .Long("A call takes 64 bytes. The trace of a rank ends there, and dtrun trace says so.")
                        .Default("64MiB")
                        .Range("64KiB", "1TiB");
};

struct FailuresTable {
  PathsField path =
      Row("failures.path", kRoot, "your own files that explain error messages in the verdict")
          .Long("TOML files that list known failures, each as [[failure]] with id, texts, what and fix; "
                "docs/failures.md has an example. If the output of a failed rank contains one of the texts, the "
                "verdict prints what and fix. They take precedence over dtrun's own list. If dtrun cannot read a "
                "file completely, the job does not start.")
          .Scope(DTRUN_SCOPE_HOST)
          .MustExist();
};

struct LogsTable {
  TextField dir =
      Row("logs.dir", kAgent, "folder of one run, with a log per rank")
          .Long("Relative to the folder where dtrun was started; ~ and ${NAME} expand. {job} is the name of the job, "
                "{time} the start of the run. Without {time} all runs use the same folder: dtrun moves the files of "
                "the previous run into a folder before-TIME in it, and rejects two jobs at the same time. If the "
                "default folder cannot be written, dtrun warns and uses ~/.local/state/dtrun/runs.")
          .Default("runs/{job}/{time}")
          .Scope(DTRUN_SCOPE_HOST);
  TextField mode =
      Row("logs.mode", kAgent, "who may read the folder of a run")
          .Long("\"private\": only you; \"group\": also the folder's group; \"all\": everybody; or the folder's mode "
                "as an octal number, such as \"0750\". Files get the same mode without the right to execute. The "
                "umask has no effect.")
          .Default("private")
          .Scope(DTRUN_SCOPE_HOST);
  PathField dir_file = Row("logs.dir_file", kAgent, "file to which dtrun writes the path of the folder of a run")
                           .Long("For programs that start dtrun and read the verdict. Written before ranks start; an "
                                 "existing file is replaced.")
                           .Scope(DTRUN_SCOPE_HOST);
};

// What the user sees of the ranks' output; does not affect the ranks.
struct OutputTable {
  TextField ranks = Row("output.ranks", kRoot, "ranks shown on your terminal")
                        .Long("\"all\", \"none\", or ranks and ranges, such as \"0\" or \"0,4-7\". The log files have "
                              "the output of every rank, and the verdict quotes the rank that failed.")
                        .Default("all")
                        .Scope(DTRUN_SCOPE_PROCESS);
  BoolField fold = Row("output.fold", kRoot, "print equal lines of several ranks once")
                       .Long("\"[0-7] loading\" instead of eight lines. dtrun holds a line until every rank has printed "
                             "it or a later line, at most 250 ms; lines of one rank keep their order.")
                       .Default("false")
                       .Scope(DTRUN_SCOPE_PROCESS);
  EnumField prefix = Row("output.prefix", kRoot, "prefix of each line of output")
                         .Long("\"auto\" is the rank if the job has several, otherwise nothing; \"host\" is rank and "
                               "host.")
                         .Renamed("logs.prefix")
                         .Default("auto")
                         .Choices({"auto", "rank", "host", "none"})
                         .Scope(DTRUN_SCOPE_PROCESS);
  BoolField timestamps = Row("output.timestamps", kRoot, "print the time before each line of output")
                             .Long("The local time at which the host where you started dtrun read the line.")
                             .Default("false")
                             .Scope(DTRUN_SCOPE_PROCESS);
  EnumField color = Row("output.color", kRoot, "color prefixes, warnings and the verdict")
                        .Long("\"auto\" colors a terminal, unless NO_COLOR is set. The same as --color.")
                        .Default("auto")
                        .Choices({"auto", "always", "never"})
                        .Scope(DTRUN_SCOPE_PROCESS);
};

// Every option of dtrun; the order is that of `dtrun config list`. Copied from the one instance that declares the rows.
struct Tables {
  JobTable job;
  ClusterTable cluster;
  LauncherTable launcher;
  BackendTable backend;
  PluginsTable plugins;
  PythonTable python;
  CommTable comm;
  NetworkTable network;
  RestartTable restart;
  WatchTable watch;
  MetricsTable metrics;
  TraceTable trace;
  FailuresTable failures;
  LogsTable logs;
  OutputTable output;
};

// The platform that named the hosts of the job; all empty: none.
struct HostsFrom {
  std::string platform;
  std::string sharing;  // how it passes a variable to all hosts; empty: not needed or unknown
  std::string here;     // its name for this host, if it has one
};

// The options of one plugin.
struct PluginOptions {
  std::string kind;        // "backend" or "launcher"
  std::string name;        // as the config has it
  options::Schema schema;  // with full keys: "backend.options.interface"
  std::map<std::string, options::Value, std::less<>> values;  // by full key

  // The backends that this one stands on.
  std::vector<PluginOptions> wrapped = {};
  // Of one of those: the option of the wrapper that names it, and the file, once it is found.
  std::string named_by = {};
  std::string path = {};
  std::string file_id = {};

  dtrun_options Snapshot() const;  // in the form that the plugin sees
  std::string OwnKey(std::string_view key) const;  // "backend.gloo.interface" for "backend.options.interface"
};

struct JobSpec : Tables {
  JobSpec();  // the defaults

  PluginOptions launcher_options;
  std::vector<PluginOptions> backend_options;  // in the order of backend.name, without those that cannot be loaded
  PluginOptions below;  // of all backends that those stand on: schema and values, by OwnKey
  std::vector<hosts::HostSlots> listed;  // cluster.hosts; empty: not set
  PortRange ports;                       // cluster.port_range; last is 0 if not set
  HostsFrom hosts_from;
  std::vector<std::string> devices;  // the device plugins that exist
  std::filesystem::path file;        // as given; empty: none
  std::filesystem::path folder;      // absolute; the file's folder, else the current one
  std::map<std::string, std::string> entry_places;  // "job.env.A": its place in the file

  // For those who list, explain or record all options: by key, without a type. "backend.options." are those of the
  // first backend, "backend.NAME." those of a backend that another one stands on.
  options::Schema schema() const;
  const options::Spec* Find(std::string_view key) const;  // null: no such option
  const options::Value& Get(std::string_view key) const;  // REQUIRES: the option exists
  // The place of the entry `name` in a table of strings; the place of the table if the entry's is unknown.
  const std::string& PlaceOf(const AnyField& table, const std::string& name) const;
  const PluginOptions* OptionsOf(std::string_view backend) const;  // null: none were read
  AnyField* FieldOf(std::string_view key);                         // null: no such option of dtrun
};

// The rows of dtrun's own options.
const options::Schema& CoreSchema();

// "DTRUN_CONFIG_BACKEND_NAME" for "backend.name".
std::string EnvironmentName(std::string_view key);

}  // namespace dtrun::spec
