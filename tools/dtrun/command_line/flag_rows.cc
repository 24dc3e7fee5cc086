// Flags that several launchers share, and torchrun's.
#include "tools/dtrun/command_line/flag_rows.h"

namespace dtrun::cli {
namespace {

using enum Reading;

constexpr ForeignFlag kCounts[] = {
    {" -np --np --n --ntasks --num-processes --num-proc ", "mpirun, srun, accelerate, horovodrun", kOption,
     "--ranks"},
    {" -c ", "mpirun", kOption, "--ranks", {}, {}, kCertain},
    {" --nnodes --nodes --num-machines --num-nodes ", "torchrun, srun, accelerate, deepspeed", kHostCount,
     "dtrun starts all hosts from one, and the number of them is one number: --hosts 2; jobs that grow and "
     "shrink: --set cluster.min_hosts=N with restart.max, or 'dtrun torchrun --nnodes MIN:MAX ...', which "
     "takes torchrun's whole command line"},
    {" -host -hosts --nodelist -w ", "mpirun, srun", kOption, "--hosts"},
    {" -hostfile -machinefile --machinefile --default-hostfile -f --deepspeed-hostfile --mpirun-hostfile ",
     "mpirun, mpiexec, accelerate", kOption, "--hostfile"},
    {" --nproc-per-node --ntasks-per-node --npernode -npernode -ppn --ppn -perhost --num-gpus ",
     "torchrun, srun, mpirun, deepspeed", kOption, "--processes-per-host"},
    {" -N ", "mpirun", kOption, "--processes-per-host", {}, {}, kCertain},
    {" --nproc ", "other launchers", kRefused,
     "-n {} counts the ranks of all hosts together, --processes-per-host {} those of each"},
};

constexpr std::string_view kOneHost = "without --hosts a job is on this machine alone";
constexpr std::string_view kOneNodeMeetsNobody = "a job on one host has no rendezvous";

constexpr ForeignFlag kTorchrun[] = {
    {" --node-rank ", "torchrun", kRefused,
     "where every host runs the command itself, dtrun's flag is --host-index {} (cluster.connect = "
     "\"manual\"); or 'dtrun torchrun' takes torchrun's whole command line"},
    {" --standalone ", "torchrun", kNothing, kOneHost},
    {" --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf ", "torchrun", kNothingOf, kOneNodeMeetsNobody},
    {" -m --module ", "torchrun, accelerate, deepspeed", kModule, ""},
    {" --no-python ", "torchrun", kNothing, "dtrun runs any program, and a .py with python3"},
    {" --max-restarts ", "torchrun", kSetting, "restart.max"},
    {" --log-dir ", "torchrun", kSetting, "logs.dir"},
    {" --master-port ", "torchrun", kSetting, "job.master_port"},
    {" --port ", "other launchers", kRefused,
     "rank 0 gets a free port, or the one of --set job.master_port={}"},
    {" --master-addr ", "torchrun, deepspeed", kRefused, kAddressAdvice},
    {" --redirects -r --tee --role --run-path --use-env --monitor-interval --start-method --local-addr "
     "--virtual-local-rank --local-ranks-filter --duplicate-stdout-filters --duplicate-stderr-filters "
     "--log-line-prefix-template --logs-specs --event-log-handler --numa-binding --signals-to-handle "
     "--shutdown-timeout ",
     "torchrun", kRefused, "'dtrun torchrun' takes torchrun's whole command line, this flag included"},
};

// Flags of dtrun's verbs, and flags that other launchers share.
constexpr ForeignFlag kOther[] = {
    {" --dry-run --display-map -display-map ", "other launchers", kRefused,
     "'dtrun plan' in place of 'dtrun' shows what would be started, and starts nothing"},
    {" --debug ", "other launchers", kRefused,
     "-v prints all that dtrun chose, and 'dtrun explain latest' reports on the run"},
    {" --backend ", "'dtrun bench'", kSetting, "backend.name"},
    {" --launcher ", "other launchers", kSetting, "launcher.name"},
};

}  // namespace

std::span<const ForeignFlag> CountFlags() { return kCounts; }
std::span<const ForeignFlag> TorchrunFlags() { return kTorchrun; }
std::span<const ForeignFlag> OtherFlags() { return kOther; }

}  // namespace dtrun::cli
