#include "tools/dtrun/command_line/flags.h"

#include <algorithm>
#include <iterator>

namespace dtrun::cli {
namespace {

constexpr std::string_view kTorchrunInstead =
    "'dtrun torchrun' takes torchrun's whole command line, this flag included";
constexpr std::string_view kSchedulers =
    "this is for the scheduler: give it to sbatch, salloc or srun, and start dtrun inside";
constexpr std::string_view kBinding =
    "say which processors ranks get by --set job.bind=compact, spread or none";

constexpr ForeignFlag kFlags[] = {
    // Means the same.
    {" -np --ntasks --num-processes ", "mpirun, srun, accelerate", "--ranks", ""},
    {" --nodes ", "srun", "--hosts", ""},
    {" -host -hosts --nodelist ", "mpirun, srun", "--hosts", ""},
    {" -hostfile -machinefile --machinefile --default-hostfile ", "mpirun", "--hostfile", ""},
    {" --nproc-per-node --ntasks-per-node --npernode -npernode -ppn --ppn --num-gpus ",
     "torchrun, srun, mpirun, deepspeed", "--processes-per-host", ""},

    // torchrun
    {" --nnodes ", "torchrun", "",
     "dtrun starts all hosts from one: --hosts node0,node1; where every node runs the command itself, "
     "'dtrun torchrun --nnodes ...' takes torchrun's whole command line"},
    {" --node-rank ", "torchrun", "",
     "where every host runs the command itself, dtrun's flag is --host-index (cluster.connect = \"manual\"); "
     "or 'dtrun torchrun' takes torchrun's whole command line"},
    {" --standalone ", "torchrun", "", "leave it out: without --hosts a job is on this machine alone"},
    {" -m --module ", "torchrun", "", "write the interpreter: dtrun -n 4 python3 -m MODULE"},
    {" --no-python ", "torchrun", "", "leave it out: dtrun runs any program, and a .py by python3"},
    {" --max-restarts ", "torchrun", "", "write --set restart.max=N"},
    {" --log-dir ", "torchrun", "", "write --set logs.dir=DIR"},
    {" --master-port ", "torchrun", "", "write --set job.master_port=N; without it a free port is taken"},
    {" --master-addr ", "torchrun, deepspeed", "",
     "leave it out: dtrun tests which network joins the hosts, and MASTER_ADDR is on it (--set "
     "network.interface=NAME chooses one)"},
    {" --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf --redirects --tee --role --run-path --use-env "
     "--monitor-interval --start-method --local-addr --virtual-local-rank ",
     "torchrun", "", kTorchrunInstead},

    // mpirun and mpiexec
    {" -x -env --env -genv ", "mpirun", "",
     "ranks have the environment that dtrun has; to set a variable: --set job.env.NAME=VALUE"},
    {" --mca -mca ", "mpirun", "",
     "Open MPI reads the same from a variable: --set job.env.OMPI_MCA_KEY=VALUE; or let mpirun start the "
     "ranks: "
     "--set launcher.name=mpirun"},
    {" --bind-to -bind-to ", "mpirun", "", kBinding},
    {" --map-by -map-by --rank-by -rank-by ", "mpirun", "",
     "ranks are numbered along the hosts, and fill each; --set job.bind=spread places neighbours apart, and "
     "--set launcher.name=mpirun keeps mpirun's mapping"},
    {" -wdir --wdir -wd --wd --chdir ", "mpirun, srun", "", "write --set job.cwd=DIR"},
    {" --oversubscribe -oversubscribe ", "mpirun", "", "write --set cluster.oversubscribe=true"},
    {" --allow-run-as-root -allow-run-as-root ", "mpirun", "", "leave it out: root needs no permission here"},
    {" --tag-output -tag-output -l --label -prepend-rank ", "mpirun, srun", "",
     "leave it out: lines have their rank in front where there are several (logs.prefix)"},
    {" --report-bindings -report-bindings ", "mpirun", "",
     "leave it out: 'dtrun plan' shows each rank's processors"},
    {" --output-filename -output-filename ", "mpirun", "",
     "leave it out: the run's folder has a file for each rank"},

    // srun, sbatch
    {" --cpus-per-task ", "srun", "", kBinding},
    {" --gpus --gpus-per-task --gpus-per-node --gres ", "srun", "",
     "ask the scheduler for GPUs; here -n gpu starts a rank for each GPU of a host, and --set "
     "job.gpu_visibility=own gives each rank its own"},
    {" --partition --account --time --job-name --exclusive --mem --constraint --qos ", "srun", "",
     kSchedulers},
    {" --mpi ", "srun, horovodrun", "",
     "write --set job.pmi=pmix (or pmi1) where dtrun does not see the need itself"},

    // horovodrun
    {" --gloo ", "horovodrun", "", "write --set job.dialects=horovod, which gives ranks Horovod's variables"},
    {" --network-interface --network-interfaces ", "horovodrun", "", "write --set network.interface=NAME"},
    {" --start-timeout ", "horovodrun", "", "write --set cluster.join_timeout=30s"},
    {" --min-np --min-num-proc --max-np --max-num-proc --host-discovery-script --slots-per-host ",
     "horovodrun", "", "jobs that grow and shrink go by hosts: --set cluster.min_hosts=N, with restart.max"},
    {" --ssh-port --ssh-identity-file ", "horovodrun", "",
     "write it into cluster.remote_shell, such as [\"ssh\", \"-p\", \"2222\"], or into ~/.ssh/config"},

    // accelerate, deepspeed
    {" --multi-gpu ", "accelerate", "", "write -n gpu, a rank for each GPU of a host"},
    {" --num-machines --num-nodes ", "accelerate, deepspeed", "", "name the hosts: --hosts node0,node1"},
    {" --machine-rank ", "accelerate", "", "dtrun's flag is --host-index, with cluster.connect = \"manual\""},
    {" --mixed-precision ", "accelerate", "", "write --set job.env.ACCELERATE_MIXED_PRECISION=MODE"},
    {" --main-process-ip --main-process-port ", "accelerate", "",
     "leave it out: dtrun finds the address, and takes a free port (job.master_port)"},
    {" --include --exclude ", "deepspeed", "", "name hosts and slots: --hosts node0:4,node1:2"},
};

}  // namespace

const ForeignFlag* FindForeignFlag(std::string_view flag) {
  std::string name = " ";
  std::ranges::transform(flag, std::back_inserter(name), [](char c) { return c == '_' ? '-' : c; });
  name += ' ';
  const auto found = std::ranges::find_if(
      kFlags, [&](const ForeignFlag& one) { return one.names.find(name) != std::string_view::npos; });
  return found == std::end(kFlags) ? nullptr : found;
}

}  // namespace dtrun::cli
