#include "tools/dtrun/command_line/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "core/base/text.h"

namespace dtrun::cli {
namespace {

constexpr std::string_view kSchedulers =
    "this is for the scheduler: give it to sbatch, salloc or srun, and start dtrun inside";
constexpr std::string_view kBinding =
    "choose the ranks' processors with --set job.bind=compact, spread or none";
constexpr std::string_view kThreads =
    "--set job.bind=compact gives each rank an equal share of a host's cores, and --set "
    "job.env.OMP_NUM_THREADS={} sets its threads";
constexpr std::string_view kInherited = "ranks have the environment that dtrun has";
constexpr std::string_view kSetVariable =
    "ranks have the environment that dtrun has; to set a variable: --set job.env.NAME=VALUE";
constexpr std::string_view kOneHost = "without --hosts a job is on this machine alone";
constexpr std::string_view kOneNodeMeetsNobody = "a job on one host has no rendezvous";
constexpr std::string_view kAddress =
    "leave it out: dtrun tests which network connects the hosts, and MASTER_ADDR is on it (--set "
    "network.interface=NAME chooses one)";

using enum Reading;

constexpr ForeignFlag kFlags[] = {
    {" -np --ntasks --num-processes ", "mpirun, srun, accelerate", kOption, "--ranks"},
    {" --nodes ", "srun", kOption, "--hosts"},
    {" -host -hosts --nodelist -w ", "mpirun, srun", kOption, "--hosts"},
    {" -hostfile -machinefile --machinefile --default-hostfile -f ", "mpirun, mpiexec", kOption,
     "--hostfile"},
    {" --nproc-per-node --ntasks-per-node --npernode -npernode -ppn --ppn --num-gpus ",
     "torchrun, srun, mpirun, deepspeed", kOption, "--processes-per-host"},

    {" --nproc ", "other launchers", kRefused,
     "-n {} counts the ranks of all hosts together, --processes-per-host {} those of each"},

    // torchrun
    {" --nnodes ", "torchrun", kDefault,
     "dtrun starts all hosts from one: --hosts node0,node1; where every node runs the command itself, "
     "'dtrun torchrun --nnodes ...' takes torchrun's whole command line",
     "1 1:1", kOneHost},
    {" --node-rank ", "torchrun", kRefused,
     "where every host runs the command itself, dtrun's flag is --host-index {} (cluster.connect = "
     "\"manual\"); or 'dtrun torchrun' takes torchrun's whole command line"},
    {" --standalone ", "torchrun", kNothing, kOneHost},
    {" --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf ", "torchrun", kNothingOf, kOneNodeMeetsNobody},
    {" -m --module ", "torchrun", kModule, ""},
    {" --no-python ", "torchrun", kNothing, "dtrun runs any program, and a .py with python3"},
    {" --max-restarts ", "torchrun", kSetting, "restart.max"},
    {" --log-dir ", "torchrun", kSetting, "logs.dir"},
    {" --master-port ", "torchrun", kSetting, "job.master_port"},
    {" --port ", "other launchers", kRefused,
     "rank 0 gets a free port, or the one of --set job.master_port={}"},
    {" --master-addr ", "torchrun, deepspeed", kRefused, kAddress},
    {" --redirects -r --tee --role --run-path --use-env --monitor-interval --start-method --local-addr "
     "--virtual-local-rank ",
     "torchrun", kRefused, "'dtrun torchrun' takes torchrun's whole command line, this flag included"},

    // mpirun and mpiexec
    {" -x ", "mpirun", kVariable, ""},
    {" -env -genv ", "mpiexec", kPair, "job.env."},
    {" -genvall -envall ", "mpiexec", kNothing, kInherited},
    {" -genvlist -envlist ", "mpiexec", kNothingOf, kInherited},
    {" --env ", "mpirun", kRefused, kSetVariable},
    {" --mca -mca ", "mpirun", kPair, "job.env.OMPI_MCA_"},
    {" --bind-to -bind-to ", "mpirun", kWord, "job.bind",
     "core=compact hwthread=compact numa=per-numa socket=per-socket package=per-socket none=none"},
    {" --map-by -map-by --rank-by -rank-by ", "mpirun", kMpirun,
     "ranks are numbered along the hosts, and fill each, and --set job.bind=spread places neighbours apart"},
    {" --rankfile -rankfile -rf ", "mpirun", kRefused,
     "name hosts and slots, --hosts a:2,b:4, which are filled in order; --set job.bind=compact or spread "
     "chooses processors, and --set launcher.name=mpirun keeps mpirun's mapping"},
    {" -wdir --wdir -wd --wd --chdir ", "mpirun, srun", kSetting, "job.cwd"},
    {" --oversubscribe -oversubscribe ", "mpirun", kFixed, "cluster.oversubscribe=true"},
    {" --allow-run-as-root -allow-run-as-root ", "mpirun", kNothing, "root needs no permission here"},
    {" --tag-output -tag-output -l --label -prepend-rank ", "mpirun, srun", kNothing,
     "lines have their rank in front where there are several (output.prefix)"},
    {" --report-bindings -report-bindings ", "mpirun", kNothing, "'dtrun plan' shows each rank's processors"},
    {" --pernode -pernode ", "mpirun", kFixed, "job.processes_per_host=1"},
    {" --prefix -prefix ", "mpirun", kRefused,
     "leave it out: ranks have dtrun's environment; to name another installation: --set "
     "job.env.LD_LIBRARY_PATH={}/lib"},
    {" --merge-stderr-to-stdout -merge-stderr-to-stdout ", "mpirun", kRefused,
     "write 2>&1 behind dtrun's command line"},
    {" --output-filename -output-filename ", "mpirun", kRefused,
     "leave it out: the run's folder has a file for each rank"},

    // srun, sbatch
    {" --export ", "srun", kDefault, kSetVariable, "ALL", kInherited},
    {" --cpus-per-task ", "srun", kRefused, kThreads},
    {" --cpu-bind ", "srun", kRefused, kBinding},
    {" --gpus --gpus-per-task --gpus-per-node --gres ", "srun", kRefused,
     "ask the scheduler for GPUs; here -n gpu starts a rank for each GPU of a host, and --set "
     "job.gpu_visibility=own gives each rank its own"},
    {" -p ", "srun and horovodrun", kRefused,
     "srun's partition is for the scheduler: give it to sbatch, salloc or srun; horovodrun's ssh port goes "
     "into "
     "cluster.remote_shell, such as [\"ssh\", \"-p\", \"2222\"]"},
    {" -t ", "srun and torchrun", kRefused,
     "srun's time limit is for the scheduler: give it to sbatch, salloc or srun; 'dtrun torchrun' takes "
     "torchrun's "
     "whole command line, --tee included"},
    {" --partition --account -A --time --job-name -J --exclusive --mem --constraint --qos ", "srun", kRefused,
     kSchedulers},
    {" --mpi ", "srun", kWord, "job.pmi", "pmix=pmix none=none",
     "for MPICH and Intel MPI, which have PMI-1: --set job.pmi=pmi1; for horovodrun's --mpi: --set "
     "launcher.name=mpirun"},

    // horovodrun
    {" --gloo ", "horovodrun", kFixed, "job.dialects=horovod"},
    {" --network-interface --network-interfaces ", "horovodrun", kSetting, "network.interface"},
    {" --timeline-filename ", "horovodrun", kSetting, "job.env.HOROVOD_TIMELINE"},
    {" --timeline-mark-cycles ", "horovodrun", kFixed, "job.env.HOROVOD_TIMELINE_MARK_CYCLES=1"},
    {" --autotune ", "horovodrun", kFixed, "job.env.HOROVOD_AUTOTUNE=1"},
    {" --autotune-log-file ", "horovodrun", kSetting, "job.env.HOROVOD_AUTOTUNE_LOG"},
    {" --cycle-time-ms ", "horovodrun", kSetting, "job.env.HOROVOD_CYCLE_TIME"},
    {" --cache-capacity ", "horovodrun", kSetting, "job.env.HOROVOD_CACHE_CAPACITY"},
    {" --disable-cache ", "horovodrun", kFixed, "job.env.HOROVOD_CACHE_CAPACITY=0"},
    {" --no-stall-check ", "horovodrun", kFixed, "job.env.HOROVOD_STALL_CHECK_DISABLE=1"},
    {" --hierarchical-allreduce ", "horovodrun", kFixed, "job.env.HOROVOD_HIERARCHICAL_ALLREDUCE=1"},
    {" --hierarchical-allgather ", "horovodrun", kFixed, "job.env.HOROVOD_HIERARCHICAL_ALLGATHER=1"},
    {" --num-nccl-streams ", "horovodrun", kSetting, "job.env.HOROVOD_NUM_NCCL_STREAMS"},
    {" --fusion-threshold-mb ", "horovodrun", kRefused,
     "its variable has bytes: --set job.env.HOROVOD_FUSION_THRESHOLD=$(({} * 1048576))"},
    {" --log-level ", "horovodrun", kRefused,
     "write --set job.env.HOROVOD_LOG_LEVEL={}; for dtrun itself, set its variable DTRUN_LOG=info"},
    {" --check-build -cb ", "horovodrun", kRefused,
     "it starts nothing: run horovodrun --check-build; 'dtrun doctor' checks what dtrun uses"},
    {" --start-timeout ", "horovodrun", kRefused, "write --set cluster.join_timeout={s}"},
    {" --min-np --min-num-proc --max-np --max-num-proc --host-discovery-script --slots-per-host ",
     "horovodrun", kRefused,
     "jobs that grow and shrink count hosts: --set cluster.min_hosts=N, with restart.max"},
    {" --ssh-port ", "horovodrun", kRefused,
     "write --set 'cluster.remote_shell=[\"ssh\",\"-p\",\"{}\"]', or the port into ~/.ssh/config"},
    {" --ssh-identity-file ", "horovodrun", kRefused,
     "write --set 'cluster.remote_shell=[\"ssh\",\"-i\",\"{}\"]', or the file into ~/.ssh/config"},

    // accelerate, deepspeed
    {" --multi-gpu ", "accelerate", kRefused, "write -n gpu, a rank for each GPU of a host"},
    {" --num-machines --num-nodes ", "accelerate, deepspeed", kDefault, "name the hosts: --hosts node0,node1",
     "1", kOneHost},
    {" --machine-rank ", "accelerate", kRefused,
     "dtrun's flag is --host-index {}, with cluster.connect = \"manual\""},
    {" --mixed-precision ", "accelerate", kSetting, "job.env.ACCELERATE_MIXED_PRECISION"},
    {" --main-process-ip ", "accelerate", kRefused, kAddress},
    {" --main-process-port ", "accelerate", kRefused,
     "leave it out: rank 0 gets a free port, or the one of --set job.master_port={}"},
    {" --include --exclude ", "deepspeed", kRefused, "name hosts and slots: --hosts node0:4,node1:2"},
    {" --deepspeed --deepspeed-config ", "DeepSpeed's scripts", kRefused,
     "options of the script go after it: dtrun -n 4 train.py --deepspeed ds.json"},

    // dtrun's other verbs
    {" --dry-run --display-map -display-map ", "other launchers", kRefused,
     "'dtrun plan' in place of 'dtrun' shows what would be started, and starts nothing"},
    {" --debug ", "other launchers", kRefused,
     "-v prints all that dtrun chose, and 'dtrun explain latest' reports on the run"},
    {" --backend ", "'dtrun bench'", kSetting, "backend.name"},
    {" --launcher ", "other launchers", kSetting, "launcher.name"},
    {" --timeout ", "'dtrun doctor'", kRefused,
     "a job's limits are --set backend.timeout={s} for an operation, and --set cluster.join_timeout={s} for "
     "hosts to join"},
};

void Replace(std::string_view placeholder, const std::string& by, std::string* text) {
  for (std::size_t at = text->find(placeholder); at != text->npos;
       at = text->find(placeholder, at + by.size()))
    text->replace(at, placeholder.size(), by);
}

}  // namespace

std::string AdviceOf(const ForeignFlag& flag, const std::string& value) {
  std::string text(flag.text);
  Replace("{s}", IsDigits(value) ? value + "s" : value, &text);
  Replace("{}", value, &text);
  return text;
}

const ForeignFlag* FindForeignFlag(std::string_view flag) {
  std::string name = " ";
  std::ranges::transform(flag, std::back_inserter(name), [](char c) { return c == '_' ? '-' : c; });
  name += ' ';
  const auto found = std::ranges::find_if(
      kFlags, [&](const ForeignFlag& one) { return one.names.find(name) != std::string_view::npos; });
  return found == std::end(kFlags) ? nullptr : found;
}

std::vector<std::string> ForeignNames() {
  std::vector<std::string> names;
  for (const ForeignFlag& flag : kFlags) {
    if (flag.reading == kRefused || flag.reading == kMpirun || flag.reading == kModule) continue;
    for (std::size_t at = flag.names.find(" --"); at != flag.names.npos;
         at = flag.names.find(" --", at + 1)) {
      names.emplace_back(flag.names.substr(at + 1, flag.names.find(' ', at + 1) - at - 1));
    }
  }
  return names;
}

Result<ForeignWords> ReadForeign(const ForeignFlag& flag, const std::string& name,
                                 const std::function<Result<std::string>()>& value) {
  const auto set = [&](const std::string& setting) {
    return ForeignWords{{"--set", setting}, fmt::format("{} is read as --set {}", name, setting)};
  };
  const auto nothing = [&](std::string_view why) {
    return ForeignWords{{}, fmt::format("{} has no effect: {}", name, why)};
  };
  const auto refused = [&] {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("{} is a flag of {}; {}", name, flag.launcher, flag.text)};
  };
  if (flag.reading == kRefused) {
    const bool repeats = flag.text.find('{') != flag.text.npos;
    const Result<std::string> given = repeats ? value() : std::string();
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("{} is a flag of {}; {}", name, flag.launcher,
                                                     AdviceOf(flag, given ? *given : "VALUE"))};
  }
  if (flag.reading == kFixed) return set(std::string(flag.text));
  if (flag.reading == kNothing) return nothing(flag.text);
  const Result<std::string> given = value();
  if (!given) return given.error();
  if (flag.reading == kMpirun) {
    return Error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("{} is a flag of {}; {}; for mpirun's own mapping: --set launcher.name=mpirun --set "
                    "'launcher.options.arguments=[\"{}\",\"{}\"]'",
                    name, flag.launcher, flag.text, name, *given)};
  }
  if (flag.reading == kSetting) return set(fmt::format("{}={}", flag.text, *given));
  if (flag.reading == kNothingOf) return nothing(flag.text);
  if (flag.reading == kDefault) {
    const auto harmless = Split(flag.words, ' ');
    if (std::ranges::count(harmless, *given) > 0) return nothing(flag.why);
    return refused();
  }
  if (flag.reading == kPair) {
    const Result<std::string> second = value();
    if (!second) return second.error();
    return set(fmt::format("{}{}={}", flag.text, *given, *second));
  }
  if (flag.reading == kWord) {
    std::string expected;
    for (const std::string_view word : Split(flag.words, ' ')) {
      const std::string_view there = word.substr(0, word.find('='));
      if (there == *given) return set(fmt::format("{}={}", flag.text, word.substr(there.size() + 1)));
      expected += fmt::format("{}{}", expected.empty() ? "" : ", ", there);
    }
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("{} {}: dtrun reads {}; {}", name, *given, expected,
                             flag.why.empty() ? fmt::format("else see: dtrun config explain {}", flag.text)
                                              : flag.why)};
  }
  if (given->find('=') == std::string::npos) {
    if (std::getenv(given->c_str()) != nullptr) return nothing(kInherited);
    return ForeignWords{
        {},
        fmt::format("{} {}: this variable is not set here, so ranks do not have it; export it, "
                    "or write {} {}=VALUE",
                    name, *given, name, *given),
        true};
  }
  return set("job.env." + *given);
}

}  // namespace dtrun::cli
