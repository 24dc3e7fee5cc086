// Flags of srun and sbatch.
#include "tools/dtrun/command_line/flag_rows.h"

namespace dtrun::cli {
namespace {

using enum Reading;

constexpr std::string_view kSchedulers =
    "this is for the scheduler: give it to sbatch, salloc or srun, and start dtrun inside";

constexpr ForeignFlag kScheduler[] = {
    {" --export ", "srun", kDefault, kSetVariable, "ALL", kInherited},
    {" --cpus-per-task ", "srun", kRefused, kThreadsAdvice},
    {" -c ", "srun", kRefused, kThreadsAdvice, {}, {}, kCertain},
    {" --cpu-bind ", "srun", kRefused, kBindingAdvice},
    {" --distribution -m ",
     "srun",
     kRefused,
     "ranks are numbered along the hosts, and fill each; --set job.bind=spread places neighbours apart",
     {},
     {},
     kCertain},
    {" -x ", "srun", kRefused, "name the hosts of the job alone: --hosts node1,node2", {}, {}, kCertain},
    {" --gpus --gpus-per-task --gpus-per-node --gres -G ", "srun", kRefused,
     "ask the scheduler for GPUs; here -n gpu starts a rank for each GPU of a host, and --set "
     "job.gpu_visibility=own gives each rank its own"},
    {" -p ", "srun and horovodrun", kRefused,
     "srun's partition is for the scheduler: give it to sbatch, salloc or srun; horovodrun's ssh port goes "
     "into cluster.remote_shell, such as [\"ssh\", \"-p\", \"2222\"]"},
    {" -t ", "srun and torchrun", kRefused,
     "srun's time limit is for the scheduler: give it to sbatch, salloc or srun; 'dtrun torchrun' takes "
     "torchrun's whole command line, --tee included"},
    {" --partition --account -A --time --job-name -J --exclusive --mem --constraint -C --qos ", "srun",
     kRefused, kSchedulers},
    {" --overcommit -O ", "srun", kFixed, "cluster.oversubscribe=true"},
    {" --output -o --error -e ",
     "srun",
     kRefused,
     "leave it out: the run's folder has a file for each rank (--set logs.dir=DIR chooses it)",
     {},
     {},
     kCertain},
    {" --mpi ", "srun", kWord, "job.pmi", "pmix=pmix none=none",
     "for MPICH and Intel MPI, which have PMI-1: --set job.pmi=pmi1; for horovodrun's --mpi: --set "
     "launcher.name=mpirun"},
};

}  // namespace

std::span<const ForeignFlag> SchedulerFlags() { return kScheduler; }

}  // namespace dtrun::cli
