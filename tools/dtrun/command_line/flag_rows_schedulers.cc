// Flags of srun and sbatch.
#include "tools/dtrun/command_line/flag_rows.h"

namespace dtrun::cli {
namespace {

using enum Reading;

constexpr std::string_view kSchedulers =
    "this is for the scheduler: give it to sbatch, salloc or srun, and start dtrun inside";

constexpr std::string_view kOutputFiles =
    "leave it out: the run's folder has a file for each rank (--set logs.dir=DIR chooses it)";

constexpr std::string_view kQuietAdvice = "dtrun's flag is -q, before the verb";

constexpr ForeignFlag kScheduler[] = {
    {" -q -H --hold -b -s --oversubscribe --gres-flags --mcs-label --reboot --prefer "
     "-d --dependency -L --licenses -M --clusters -S --core-spec -B --extra-node-info "
     "--begin --bb --bbf --comment --contiguous --cores-per-socket --deadline --delay-boot --gpu-freq "
     "--cpu-freq -I --immediate --jobid --mail-type --mail-user --mem-per-cpu --mem-per-gpu --mincpus "
     "--nice --power --priority --profile --acctg-freq --reservation --signal --sockets-per-node "
     "--spread-job --switches --thread-spec --threads-per-core --time-min --tmp --tres-per-task --uid "
     "--gid --use-min-nodes --wckey -D --overlap --exact --network -Z --no-allocate ",
     "srun",
     kRefused,
     kSchedulers,
     {},
     {},
     kCertain},
    {" -Q ", "srun", kRefused, kQuietAdvice, {}, {}, kCertain},
    {" -V --version --usage ", "srun", kRefused, "it starts nothing: run srun --help or --version", {}, {}, kCertain},
    {" -K --kill-on-bad-exit ",
     "srun",
     kNothing,
     "a rank that fails ends the job (restart.max starts it again)",
     {},
     {},
     kCertain},
    {" -u --unbuffered ", "srun", kNothing, "dtrun passes each line on at once", {}, {}, kCertain},
    {" --hint --mem-bind --gpu-bind --accel-bind --ntasks-per-core --ntasks-per-socket ",
     "srun",
     kRefused,
     kBindingAdvice,
     {},
     {},
     kCertain},
    {" --ntasks-per-gpu ", "srun", kRefused, "-n gpu starts a rank for each GPU of a host", {}, {}, kCertain},
    {" --multi-prog ",
     "srun",
     kRefused,
     "a dtrun job has one program: let it branch on the variable RANK, or write sh -c 'case $RANK in ...'",
     {},
     {},
     kCertain},
    {" -W --wait -k --no-kill -i --input -E --preserve-env -r --relative -F --nodefile -X --disable-status "
     "--pty --propagate --prolog --epilog --task-prolog --task-epilog --slurmd-debug --bcast "
     "--cluster-constraint --resv-ports --quit-on-interrupt --het-group --export-file --get-user-env "
     "--test-only --send-libs --debugger-test --x11 --interactive --container "
     "--bcast-exclude --compress -T --threads --msg-timeout ",
     "srun",
     kUnread,
     "",
     {},
     {},
     kCertain},
    {" --export ", "srun", kDefault, kSetVariable, "ALL", kInherited},
    {" --cpus-per-task --cpus-per-gpu ", "srun", kRefused, kThreadsAdvice},
    {" -c ", "srun", kRefused, kThreadsAdvice, {}, {}, kCertain},
    {" --cpu-bind ", "srun", kRefused, kBindingAdvice},
    {" --distribution -m ",
     "srun",
     kRefused,
     "ranks are numbered along the hosts, and fill each; --set job.bind=spread places neighbours apart",
     {},
     {},
     kCertain},
    {" -x --exclude ", "srun", kRefused, "name the hosts of the job alone: --hosts node1,node2", {}, {}, kCertain},
    {" --gpus --gpus-per-task --gpus-per-node --gpus-per-socket --gres -G ", "srun", kRefused,
     "ask the scheduler for GPUs; here -n gpu starts a rank for each GPU of a host, and --set "
     "job.gpu_visibility=own gives each rank its own"},
    {" -p ", "srun and horovodrun", kRefused,
     "srun's partition is for the scheduler: give it to sbatch, salloc or srun; horovodrun's ssh port goes "
     "into cluster.remote_shell, such as [\"ssh\", \"-p\", \"2222\"]"},
    {" -t ", "srun and torchrun", kRefused,
     "for srun's time limit write --time-limit DURATION, such as 2h; 'dtrun torchrun' takes torchrun's whole "
     "command line, --tee included"},
    {" --time ", "srun", kRefused,
     "write --time-limit DURATION, such as 2h; the scheduler's own goes to sbatch or salloc"},
    {" --partition --account -A --job-name -J --exclusive --mem --constraint -C --qos ", "srun", kRefused,
     kSchedulers},
    {" --overcommit -O ", "srun", kFixed, "cluster.oversubscribe=true"},
    {" --output -o --error --open-mode ", "srun", kUnread, kOutputFiles},
    {" -e ", "srun", kUnread, kOutputFiles, {}, {}, kCertain},  // given to dtrun it is deepspeed's --exclude
    {" --mpi ", "srun", kWord, "job.pmi", "pmix=pmix none=none",
     "for MPICH and Intel MPI, which have PMI-1: --set job.pmi=pmi1; for horovodrun's --mpi: --set "
     "launcher.name=mpirun"},
};

}  // namespace

std::span<const ForeignFlag> SchedulerFlags() { return kScheduler; }

}  // namespace dtrun::cli
