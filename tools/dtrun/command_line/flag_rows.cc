// The flags, parameters and variables of other launchers.
#include "tools/dtrun/command_line/flags.h"

namespace dtrun::cli {
namespace {

using enum Reading;

constexpr std::string_view kInherited = "ranks have the environment that dtrun has";
constexpr std::string_view kSetVariable =
    "ranks have the environment that dtrun has; to set a variable: --set job.env.NAME=VALUE";
constexpr std::string_view kBindingAdvice =
    "choose the ranks' processors with --set job.bind=compact, spread or none";
constexpr std::string_view kThreadsAdvice =
    "--set job.bind=compact gives each rank an equal share of a host's cores";
constexpr std::string_view kAddressAdvice =
    "leave it out: dtrun tests which network connects the hosts, and MASTER_ADDR is on it (--set "
    "network.interface=NAME chooses one)";
constexpr std::string_view kFreePort = "without it rank 0 gets a free port";
constexpr std::string_view kRestarts =
    "jobs that grow and shrink count hosts: --set cluster.min_hosts=N, with "
    "restart.max";
constexpr std::string_view kPlanAdvice = "it shows hosts, ranks and processors, and starts nothing";
constexpr std::string_view kRankFiles =
    "leave it out: the run's folder has a file for each rank (--set logs.dir=DIR chooses it)";
constexpr std::string_view kOneProgram =
    "a dtrun job has one program: let it branch on the variable RANK, or write sh -c 'case $RANK in ...'";
constexpr std::string_view kNamedHosts = "name the hosts of the job alone: --hosts node1,node2";
constexpr std::string_view kDebuggerAdvice =
    "start the debugger as the program: dtrun -n 2 gdb -batch -ex run --args PROGRAM";
constexpr std::string_view kStdin =
    "rank 0 reads dtrun's stdin, and the others an empty one: write <FILE behind dtrun's command line";
constexpr std::string_view kDistribution =
    "ranks are numbered along the hosts, and fill each; --set job.bind=spread places neighbours apart";
constexpr std::string_view kScheduler =
    "this is for the scheduler: give it to sbatch, salloc or srun, and start dtrun inside";

// clang-format off
constexpr ForeignFlag kFlags[] = {
    // Numbers of hosts and ranks.
    {"-np= --np= --n= --ntasks= --num-processes= --num-proc=", "mpirun, srun, accelerate, horovodrun", "--ranks {}"},
    {"--nnodes= --nodes= --num-machines= --num-nodes=", "torchrun, srun, accelerate, deepspeed", "-N {}", kHosts,
     "dtrun starts all hosts from one, and the number of them is one number: --hosts 2; jobs that grow and shrink: "
     "--set cluster.min_hosts=N with restart.max, or 'dtrun torchrun --nnodes MIN:MAX ...', which takes torchrun's "
     "whole command line"},
    {"-host= -hosts= --nodelist= -w=", "mpirun, srun", "--hosts {}"},
    {"-hostfile= -machinefile= --machinefile= --default-hostfile= -f= --deepspeed-hostfile= --mpirun-hostfile= "
     "orte-default-hostfile prte-default-hostfile HYDRA_HOST_FILE", "mpirun, mpiexec, accelerate", "--hostfile {}"},
    {"--nproc-per-node= --ntasks-per-node= --npernode= -npernode= -ppn= --ppn= -perhost= --num-gpus= I_MPI_PERHOST",
     "torchrun, srun, mpirun, deepspeed", "--processes-per-host {}"},
    {"--nproc=", "other launchers", "--processes-per-host {}", kRefused,
     "it counts the ranks of each host, -n {} those of all hosts together"},

    // torchrun.
    {"--node-rank=", "torchrun", "", kEachHost,
     "where every host runs the command itself, dtrun's flag is --host-index {} (cluster.connect = \"manual\"); or "
     "'dtrun torchrun' takes torchrun's whole command line"},
    {"--standalone", "torchrun", "", kNothing, "without --hosts a job is on this machine alone"},
    {"--rdzv-backend= --rdzv-endpoint= --rdzv-id= --rdzv-conf=", "torchrun", "", kNothing,
     "dtrun connects the hosts itself; 'dtrun torchrun' takes torchrun's whole command line"},
    {"-m --module", "torchrun, accelerate, deepspeed", "", kModule},
    {"--no-python", "torchrun", "", kNothing, "dtrun runs any program, and a .py with python3"},
    {"--max-restarts=", "torchrun, mpirun", "--set restart.max={}"},
    {"--restart= --restarts= --retries=", "other launchers", "--set restart.max={}"},
    {"--log-dir=", "torchrun", "--set logs.dir={}"},
    {"--master-port=", "torchrun", "--set job.master_port={}"},
    {"--port=", "other launchers", "--set job.master_port={}", kRefused, kFreePort},
    {"--master-addr=", "torchrun, deepspeed", "", kRefused, kAddressAdvice},
    {"--redirects= -r= --tee= --role= --run-path --use-env --monitor-interval= --start-method= --local-addr= "
     "--virtual-local-rank --local-ranks-filter= --duplicate-stdout-filters= --duplicate-stderr-filters= "
     "--log-line-prefix-template= --logs-specs= --event-log-handler= --numa-binding= --signals-to-handle= "
     "--shutdown-timeout=", "torchrun", "", kRefused,
     "'dtrun torchrun' takes torchrun's whole command line, this flag included"},

    // Open MPI's mpirun, and mpiexec of MPICH and Intel MPI. Open MPI's long flags may have one dash, too.
    {"-x= --set-env=", "mpirun", "--set job.env.{}", kVariable},
    {"--unset-env=", "mpirun", "env -u {}", kRefused, kInherited},
    {"--append-env== --prepend-env==", "mpirun", "", kUnread,
     "ranks have the environment that dtrun has: export the variable, with the part added, before dtrun"},
    {"--fwd-environment", "mpirun", "", kNothing, kInherited},
    {"-env== -genv==", "mpiexec", "--set job.env.{}"},
    {"-genvall -envall -genvlist= -envlist=", "mpiexec", "", kNothing, kInherited},
    {"-genvnone -envnone", "mpiexec", "", kRefused,
     "ranks have the environment that dtrun has: write env -i dtrun ..."},
    {"--env=", "mpirun", "", kRefused, kSetVariable},
    {"--mca== --gmca== --omca== --gomca==", "mpirun", "--set job.env.OMPI_MCA_{}"},
    {"--prtemca==", "mpirun", ""},
    {"--pmixmca== --gpmixmca==", "mpirun", "--set job.env.PMIX_MCA_{}"},
    {"--am= --amca= --tune=", "mpirun", "", kUnread, "give each parameter with --mca NAME VALUE"},
    {"--bind-to= --bindto= hwloc-base-binding-policy hwloc-default-binding-policy HYDRA_BINDING", "mpirun",
     "--set job.bind={}", kOneOf, "",
     "core=core hwthread=compact numa=per-numa socket=per-socket package=per-socket none=none"},
    {"--bind-to-core", "mpirun", "--set job.bind=core"},
    {"--bind-to-socket", "mpirun", "--set job.bind=per-socket"},
    {"--map-by= --mapby= --rank-by= --rankby= rmaps-base-mapping-policy rmaps-base-ranking-policy "
     "rmaps-default-mapping-policy rmaps-default-ranking-policy HYDRA_MAPPING", "mpirun", "", kMpirun,
     "ranks fill one host after another, as by slot; ppr:N:node: use --processes-per-host N (there is no round-robin "
     "over hosts); --set job.bind=spread spreads the ranks of a host over its NUMA nodes", "slot ppr:N:node"},
    {"--npersocket= --ppr=", "mpirun", "", kMpirun,
     "--processes-per-host N counts the ranks of a host, and --set job.bind=per-socket gives each the processors of "
     "its sockets"},
    {"--cpu-list= --cpu-set= --cf= --cartofile= -membind= HYDRA_MEMBIND", "mpirun", "", kMpirun, kBindingAdvice},
    {"--byslot --bycore", "mpirun", "", kNothing, "ranks fill each host before the next"},
    {"--bynode", "mpirun", "", kMpirun, "ranks are numbered along the hosts, and fill each"},
    {"--cpus-per-proc= --cpus-per-rank=", "mpirun", "--set job.env.OMP_NUM_THREADS={}", kRefused, kThreadsAdvice},
    {"--use-hwthread-cpus", "mpirun", "", kUnread,
     "leave it out; --hosts NAME:SLOTS says how many ranks a host takes, and --set cluster.oversubscribe=true lets it "
     "take more"},
    {"--rankfile= -rf=", "mpirun", "", kMpirun,
     "name hosts and slots, --hosts a:2,b:4, which are filled in order; --set job.bind=compact or spread chooses "
     "processors"},
    {"--wdir= --wd= --chdir= -D= SLURM_REMOTE_CWD", "mpirun, srun", "--set job.cwd={}"},
    {"--oversubscribe", "mpirun", "--set cluster.oversubscribe=true"},
    {"--nooversubscribe", "mpirun", "--set cluster.oversubscribe=false"},
    {"--nolocal -skip-launch-node", "mpirun", "", kRefused, kNamedHosts},
    {"--allow-run-as-root", "mpirun", "", kNothing, "root needs no permission here"},
    {"--tag-output -l --label -prepend-rank", "mpirun, srun", "", kNothing,
     "lines have their rank in front where there are several (output.prefix)"},
    {"--timestamp-output", "mpirun", "--set output.timestamps=true"},
    {"--report-bindings", "mpirun", "", kNothing,
     "the header's line 'binding' says which processors ranks are bound to, if they are (-v: always), and 'dtrun plan' "
     "shows each rank's"},
    {"--display-allocation --display-devel-allocation --display-devel-map --display-diffable-map --display-topo --display= "
     "--do-not-launch", "mpirun", kPlan, kRefused, kPlanAdvice},
    {"--pernode", "mpirun", "--set job.processes_per_host=1"},
    {"--add-host= --add-hostfile=", "mpirun", "", kUnread, "name all hosts of the job: --hosts node1,node2"},
    {"--prefix=", "mpirun", "", kRefused,
     "leave it out: ranks have dtrun's environment; to name another installation: --set "
     "job.env.LD_LIBRARY_PATH={}/lib"},
    {"--noprefix", "mpirun", "", kNothing, kInherited},
    {"--path=", "mpirun", "", kRefused, "write the program with its folder, {}/PROGRAM, or put that folder into PATH"},
    {"--merge-stderr-to-stdout", "mpirun", "", kRefused, "write 2>&1 behind dtrun's command line"},
    {"--output-filename= --output-directory=", "mpirun", "--set logs.dir={}", kRefused,
     "it is the run's folder, with a file for each rank"},
    {"-outfile-pattern= -errfile-pattern=", "mpiexec", "", kRefused, kRankFiles},
    {"--stream-buffering=", "mpirun", "", kUnread,
     "leave it out: dtrun passes each line on at once; the C library's buffering is set by stdbuf: stdbuf -oL PROGRAM"},
    {"--timeout= I_MPI_JOB_TIMEOUT MPIEXEC_TIMEOUT", "mpirun", "--time-limit {s}", kRefused,
     "it limits the whole job; --set backend.timeout={s} limits an operation, and --set cluster.join_timeout={s} "
     "joining ('dtrun doctor' has its own --timeout)"},
    {"--spawn-timeout=", "mpirun", "--set cluster.join_timeout={s}", kRefused},
    {"--rtos= --runtime-options=", "mpirun", "", kUnread,
     "a rank that fails ends the job; --set restart.max=N starts it again"},
    {"--forward-signals=", "mpirun", "", kUnread,
     "leave it out: TERM, INT, HUP and QUIT end the job, and USR1, USR2 and WINCH reach each rank"},
    {"--report-state-on-timeout --get-stack-traces", "mpirun", "", kUnread,
     "leave it out; 'dtrun explain latest' reports on a run, with the ranks' stacks where they hung"},
    {"--stdin=", "mpirun", "", kHarmless, "rank 0 reads dtrun's stdin, and the others read an empty one", "0"},
    {"--app= -configfile= HYDRA_CONFIG_FILE", "mpirun, mpiexec", "", kRefused, kOneProgram},
    {"--iface= HYDRA_IFACE", "mpiexec", "--set network.interface={}"},
    {"-launcher= -bootstrap= -rmk= HYDRA_LAUNCHER HYDRA_BOOTSTRAP HYDRA_RMK", "mpiexec", "", kUnread,
     "hosts are reached by ssh; under a scheduler write --set cluster.from=auto"},
    {"-launcher-exec= --launch-agent= HYDRA_BOOTSTRAP_EXEC HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS HYDRA_LAUNCHER_EXEC "
     "HYDRA_LAUNCHER_EXTRA_ARGS", "mpirun, mpiexec", "", kUnread,
     "the command that reaches a host is cluster.remote_shell: --set 'cluster.remote_shell=[\"ssh\"]'"},
    {"-gpus-per-proc=", "mpiexec", "", kUnread, "--set job.gpu_visibility=own gives each rank its own GPU"},
    {"-print-all-exitcodes -verbose -info --report-events= --show-progress --debug-devel -d", "mpirun, mpiexec", "",
     kUnread, "leave it out; -v prints all that dtrun chose, and a failed job's ranks are reported"},
    {"--tv --debugger= --xterm= --stop-on-exec --stop-in-init --stop-in-app", "mpirun", "", kUnread, kDebuggerAdvice},
    {"--display-comm --display-comm-finalize --gpu-support= --initial-errhandler= --with-ft=", "mpirun", "", kUnread,
     "it is Open MPI's alone: --set launcher.name=mpirun with launcher.options.arguments has mpirun start the ranks"},
    {"--tmpdir=", "mpirun", "--set job.env.TMPDIR={}", kRefused},
    {"--max-vm-size= --preload-binary -s --preload-files= --set-cwd-to-session-dir --index-argv-by-rank "
     "--enable-recovery --disable-recovery --continuous --debug-daemons --debug-daemons-file --leave-session-attached "
     "--do-not-resolve --dvm --hnp= --novm --ompi-server= --output-proctable --personality= "
     "--report-child-jobs-separately --report-pid= --report-uri= --use-regexp --xml --xml-file= --fwd-mpirun-port "
     "--enable-instant-on-support --parseable --parsable --do-not-aggregate-help --test-suicide= --app-pmix-prefix= "
     "--no-app-prefix --pmix-prefix= --pset= --keepalive= --no-ready-msg --system-server --set-sid --singleton "
     "--uniform-nodes --terminate", "mpirun", "", kUnread},
    {"-enable-x -disable-x -topolib= -demux= -profile -prepend-pattern= -nameserver= -disable-auto-cleanup "
     "-disable-hostname-propagation -order-nodes= -localhost= -usize= -pmi-port", "mpiexec", "", kUnread},

    // Parameters of mpirun and its daemons, in Open MPI 1 to 5 and PRRTE.
    {"plm-rsh-agent pls-rsh-agent orte-rsh-agent plm-ssh-agent", "mpirun", "--set cluster.remote_shell={list}"},
    {"plm-rsh-args plm-ssh-args", "mpirun", "", kRefused,
     "write --set 'cluster.remote_shell=[\"ssh\", \"-p\", \"2222\"]' with the arguments '{}' in place of these"},
    {"rmaps-base-oversubscribe", "mpirun", "--set cluster.oversubscribe={}"},
    {"orte-abort-on-non-zero-status", "mpirun", "", kHarmless,
     "a rank that fails ends the job; leave it out, and have the program exit with 0 where its failure is to be "
     "ignored", "1 true yes t y enabled"},
    {"orte-tag-output orte-report-bindings orte-allow-run-as-root hwloc-base-report-bindings", "mpirun", "", kNothing,
     "'dtrun plan' shows each rank's processors, and lines have their rank in front"},
    {"plm* pls* ras* rmaps* orte* prte* prrte* hwloc-* iof* odls* rml* routed* state* ess* oob* errmgr* filem* "
     "grpcomm* schizo* dfs* snapc* sstore* rtc* notifier*", "mpirun", "", kNothing,
     "it is a parameter of mpirun itself, and dtrun starts the ranks; 'dtrun config list' lists dtrun's options"},

    // srun and sbatch.
    {"--export= SLURM_EXPORT_ENV SRUN_EXPORT_ENV", "srun", "--set job.env.{}", kExports, kSetVariable},
    {"--cpus-per-task= --cpus-per-gpu= SRUN_CPUS_PER_TASK", "srun", "--set job.env.OMP_NUM_THREADS={}", kRefused,
     kThreadsAdvice},
    {"--cpu-bind= SLURM_CPU_BIND", "srun", "", kRefused, kBindingAdvice},
    {"--gpus= --gpus-per-task= --gpus-per-node= --gpus-per-socket= --gres= -G=", "srun", "", kRefused,
     "ask the scheduler for GPUs; here -n gpu starts a rank for each GPU of a host, and --set job.gpu_visibility=own "
     "gives each rank its own"},
    {"-p=", "srun and horovodrun", "", kRefused,
     "srun's partition is for the scheduler: give it to sbatch, salloc or srun; horovodrun's ssh port goes into "
     "cluster.remote_shell, such as [\"ssh\", \"-p\", \"2222\"]"},
    {"-t=", "srun and torchrun", "--time-limit {time}", kRefused,
     "it is srun's time limit; 'dtrun torchrun' takes torchrun's whole command line, --tee included"},
    {"--time= SLURM_TIMELIMIT", "srun", "--time-limit {time}", kRefused,
     "the scheduler's own goes to sbatch or salloc"},
    {"--partition= --account= -A= --job-name= -J= --exclusive --mem= --constraint= -C= --qos=", "srun", "", kRefused,
     kScheduler},
    {"--overcommit -O SLURM_OVERCOMMIT", "srun", "--set cluster.oversubscribe=true"},
    {"--output= -o= --error= --open-mode= SLURM_STDOUTMODE SLURM_STDERRMODE SLURM_OPEN_MODE", "srun", "", kUnread,
     kRankFiles},
    {"--mpi=", "srun", "--set job.pmi={}", kOneOf,
     "for MPICH and Intel MPI, which have PMI-1: --set job.pmi=pmi1; for horovodrun's --mpi: --set "
     "launcher.name=mpirun", "pmix=pmix none=none"},

    // Those of srun's steps that are no matter of the scheduler.
    {"--kill-on-bad-exit -K SLURM_KILL_BAD_EXIT", "srun", "", kHarmless,
     "a rank that fails ends the job (restart.max starts it again); leave it out, and have the program exit with 0 "
     "where its failure is to be ignored", "1"},
    {"--unbuffered -u", "srun", "", kNothing, "dtrun passes each line on at once"},
    {"--quit-on-interrupt", "srun", "", kNothing, "an interrupt ends the job"},
    {"--preserve-env -E", "srun", "", kNothing, kInherited},
    {"--distribution= SLURM_DISTRIBUTION", "srun", "", kHarmless, kDistribution, "block *"},
    {"--hint= --mem-bind= --gpu-bind= --accel-bind= SLURM_HINT SLURM_MEM_BIND SLURM_GPU_BIND", "srun", "", kRefused,
     kBindingAdvice},
    {"--ntasks-per-core= --ntasks-per-socket= SLURM_NTASKS_PER_CORE SLURM_NTASKS_PER_SOCKET", "srun", "", kRefused,
     "--processes-per-host N counts the ranks of a host, and job.bind chooses their processors"},
    {"--ntasks-per-gpu= SLURM_NTASKS_PER_GPU", "srun", "", kRefused, "-n gpu starts a rank for each GPU of a host"},
    {"--multi-prog", "srun", "", kRefused, kOneProgram},
    {"--wait= -W= SLURM_WAIT", "srun", "", kUnread,
     "leave it out: where a rank fails the others end within job.grace, and without a failure each may take its time"},
    {"--no-kill -k SLURM_NO_KILL", "srun", "", kRefused, kRestarts},
    {"--input= SLURM_STDINMODE", "srun", "", kUnread, kStdin},
    {"--pty", "srun", "", kUnread, "leave it out: rank 0 reads dtrun's stdin; for a shell on a host: srun --pty bash"},
    {"--overlap --exact", "srun", "", kUnread,
     "leave it out: within an allocation the ranks may have all processors of its hosts (job.bind)"},
    {"--jobid=", "srun", "", kUnread,
     "enter that allocation, and start dtrun there: srun --jobid={} --overlap -N 1 -n 1 --pty bash"},
    {"--het-group=", "srun", "", kUnread, kNamedHosts},
    {"--relative=", "srun", "", kUnread, kNamedHosts},
    {"--nodefile= -F=", "srun", "--hostfile {}", kRefused, "a host in each line"},
    {"--test-only", "srun", kPlan, kRefused, kPlanAdvice},
    {"--bcast --bcast-exclude= --compress --send-libs SLURM_BCAST SLURM_SEND_LIBS SLURM_COMPRESS", "srun", "", kUnread,
     "leave it out: each host needs the program in the same place, such as in a shared folder"},
    {"--propagate", "srun", "", kUnread,
     "leave it out; a limit of its own has a rank so: dtrun -n 2 sh -c 'ulimit -n 4096; exec PROGRAM'"},
    {"--export-file=", "srun", "", kUnread, kSetVariable},
    {"--prolog= --epilog= --task-prolog= --task-epilog= SLURM_PROLOG SLURM_EPILOG SLURM_TASK_PROLOG SLURM_TASK_EPILOG",
     "srun", "", kUnread, "have the ranks run it around the program: dtrun -n 2 sh -c 'BEFORE; PROGRAM && AFTER'"},
    {"--disable-status -X --slurmd-debug= --cluster-constraint= --resv-ports --get-user-env --debugger-test --x11 "
     "--interactive --container= --threads= -T= --msg-timeout= SLURM_RESV_PORTS SRUN_CONTAINER SLURM_THREADS", "srun",
     "", kUnread},
    {"--hold --gres-flags= --mcs-label= --reboot --prefer= --dependency= --licenses= -L= --clusters= -M= --core-spec= "
     "-S= --extra-node-info= -B= --begin= --bb= --bbf= --comment= --contiguous --cores-per-socket= --deadline= "
     "--delay-boot= --gpu-freq= --cpu-freq= --immediate --mail-type= --mail-user= --mem-per-cpu= --mem-per-gpu= "
     "--mincpus= --nice --power= --priority= --profile= --acctg-freq= --reservation= --signal= --sockets-per-node= "
     "--spread-job --switches= --thread-spec= --threads-per-core= --time-min= --tmp= --tres-per-task= --uid= --gid= "
     "--use-min-nodes --wckey= --network= --no-allocate -Z", "srun", "", kUnread, kScheduler},

    // dtrun's verbs, and flags that several launchers share.
    {"--dry-run --display-map -display-map", "other launchers", kPlan, kRefused, kPlanAdvice},
    {"--debug", "other launchers", "", kRefused,
     "-v prints all that dtrun chose, and 'dtrun explain latest' reports on the run"},
    {"--backend=", "'dtrun bench'", "--set backend.name={}"},
    {"--launcher=", "other launchers", "--set launcher.name={}"},

    // accelerate launch.
    {"--multi-gpu", "accelerate", "-n gpu", kRefused, "it is a rank for each GPU of a host"},
    {"--machine-rank=", "accelerate", "", kEachHost,
     "dtrun's flag is --host-index {}, with cluster.connect = \"manual\""},
    {"--mixed-precision=", "accelerate", "--set job.env.ACCELERATE_MIXED_PRECISION={}"},
    {"--num-cpu-threads-per-process=", "accelerate", "--set job.env.OMP_NUM_THREADS={}"},
    {"--cpu --use-cpu", "accelerate", "--set job.env.ACCELERATE_USE_CPU=true", kRefused,
     "with -n 4 for the number of ranks"},
    {"--gpu-ids=", "accelerate", "CUDA_VISIBLE_DEVICES={}", kRefused},
    {"--same-network", "accelerate", "", kNothing, "dtrun tests which network connects the hosts"},
    {"--enable-cpu-affinity --bind-cores-to-rank", "accelerate, deepspeed", "--set job.bind=compact"},
    {"--main-process-ip=", "accelerate", "", kRefused, kAddressAdvice},
    {"--main-process-port=", "accelerate", "--set job.master_port={}", kRefused, kFreePort},
    {"--config-file=", "accelerate", "", kUnread,
     "write what it sets as flags: -n for num_processes, --hosts for machines, --mixed-precision"},
    {"--use-deepspeed --zero-stage= --zero3-init-flag= --zero3-save-16bit-model= --offload-optimizer-device= "
     "--offload-param-device= --offload-optimizer-nvme-path= --offload-param-nvme-path= --gradient-clipping= "
     "--deepspeed-config-file= --deepspeed-multinode-launcher= --deepspeed-moe-layer-cls-names=", "accelerate", "",
     kUnread, "leave it out, and set it in the script: Accelerator(deepspeed_plugin=DeepSpeedPlugin(...))"},
    {"--deepspeed-inclusion-filter=", "accelerate", "--set cluster.include={}"},
    {"--deepspeed-exclusion-filter=", "accelerate", "--set cluster.exclude={}"},
    {"--use-fsdp --fsdp-*=", "accelerate", "", kUnread,
     "leave it out, and set it in the script: Accelerator(fsdp_plugin=FullyShardedDataParallelPlugin(...))"},
    {"--use-megatron-lm --megatron-lm-*=", "accelerate", "", kUnread,
     "leave it out, and set it in the script: Accelerator(megatron_lm_plugin=MegatronLMPlugin(...))"},
    {"--dynamo-use-* --dynamo-*=", "accelerate", "", kUnread,
     "leave it out, and set it in the script: Accelerator(dynamo_backend=...)"},
    {"--tpu --vm= --tpu-use-sudo --tpu-cluster --tpu-*= --no-tpu-cluster --main-training-function= --downcast-bf16 "
     "--ipex --use-xpu --use-mps-device --fp8-use-* --fp8-*= --aws-*= --mpirun-ccl=", "accelerate", "", kUnread},

    // deepspeed.
    {"--bind-core-list=", "deepspeed", "", kRefused, kBindingAdvice},
    {"--include= -i=", "deepspeed", "--set cluster.include={}"},
    {"--exclude= -e=", "deepspeed", "--set cluster.exclude={}"},
    {"--no-local-rank", "deepspeed", "", kNothing,
     "dtrun adds no --local_rank to the script's arguments, which has the variable LOCAL_RANK"},
    {"--min-elastic-nodes= --max-elastic-nodes= --elastic-training", "deepspeed", "", kRefused, kRestarts},
    {"--launcher-args=", "deepspeed", "", kUnread,
     "hosts are reached by ssh, or by a scheduler with --set cluster.from=auto"},
    {"--force-multi --no-ssh-check", "deepspeed", "", kNothing, "dtrun reaches each host before the job starts"},
    {"--no-ssh", "deepspeed", "", kUnread,
     "where every host runs the command itself, write --set cluster.connect=manual and --host-index N"},
    {"--enable-each-rank-log=", "deepspeed", "--set logs.dir={}"},
    {"--save-pid --autotuning= --venv-script=", "deepspeed", "", kUnread},
    {"--deepspeed --deepspeed-config=", "DeepSpeed's scripts", "", kRefused,
     "options of the script go after it: dtrun -n 4 train.py --deepspeed ds.json"},

    // horovodrun.
    {"--gloo", "horovodrun", "--set job.dialects=horovod"},
    {"--network-interface= --network-interfaces=", "horovodrun", "--set network.interface={}"},
    {"--timeline-filename=", "horovodrun", "--set job.env.HOROVOD_TIMELINE={}"},
    {"--timeline-mark-cycles", "horovodrun", "--set job.env.HOROVOD_TIMELINE_MARK_CYCLES=1"},
    {"--autotune", "horovodrun", "--set job.env.HOROVOD_AUTOTUNE=1"},
    {"--autotune-log-file=", "horovodrun", "--set job.env.HOROVOD_AUTOTUNE_LOG={}"},
    {"--autotune-warmup-samples=", "horovodrun", "--set job.env.HOROVOD_AUTOTUNE_WARMUP_SAMPLES={}"},
    {"--autotune-steps-per-sample=", "horovodrun", "--set job.env.HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE={}"},
    {"--autotune-bayes-opt-max-samples=", "horovodrun", "--set job.env.HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES={}"},
    {"--autotune-gaussian-process-noise=", "horovodrun", "--set job.env.HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE={}"},
    {"--cycle-time-ms=", "horovodrun", "--set job.env.HOROVOD_CYCLE_TIME={}"},
    {"--cache-capacity=", "horovodrun", "--set job.env.HOROVOD_CACHE_CAPACITY={}"},
    {"--disable-cache", "horovodrun", "--set job.env.HOROVOD_CACHE_CAPACITY=0"},
    {"--no-stall-check", "horovodrun", "--set job.env.HOROVOD_STALL_CHECK_DISABLE=1"},
    {"--stall-check-warning-time-seconds=", "horovodrun", "--set job.env.HOROVOD_STALL_CHECK_TIME_SECONDS={}"},
    {"--stall-check-shutdown-time-seconds=", "horovodrun", "--set job.env.HOROVOD_STALL_SHUTDOWN_TIME_SECONDS={}"},
    {"--hierarchical-allreduce", "horovodrun", "--set job.env.HOROVOD_HIERARCHICAL_ALLREDUCE=1"},
    {"--hierarchical-allgather", "horovodrun", "--set job.env.HOROVOD_HIERARCHICAL_ALLGATHER=1"},
    {"--num-nccl-streams=", "horovodrun", "--set job.env.HOROVOD_NUM_NCCL_STREAMS={}"},
    {"--thread-affinity=", "horovodrun", "--set job.env.HOROVOD_THREAD_AFFINITY={}"},
    {"--gloo-timeout-seconds=", "horovodrun", "--set job.env.HOROVOD_GLOO_TIMEOUT_SECONDS={}"},
    {"--mpi-threads-disable", "horovodrun", "--set job.env.HOROVOD_MPI_THREADS_DISABLE=1"},
    {"--prefix-output-with-timestamp", "horovodrun", "--set output.timestamps=true"},
    {"--no-autotune --no-timeline --no-timeline-mark-cycles --stall-check --no-hierarchical-allreduce "
     "--no-hierarchical-allgather --no-mpi-threads-disable --no-torus-allreduce", "horovodrun", "", kNothing,
     "this is Horovod's default"},
    {"--fusion-threshold-mb=", "horovodrun", "--set job.env.HOROVOD_FUSION_THRESHOLD={MiB}", kRefused,
     "its variable has bytes"},
    {"--log-level=", "horovodrun", "--set job.env.HOROVOD_LOG_LEVEL={}", kRefused,
     "for dtrun itself, set its variable DTRUN_LOG=info"},
    {"--check-build -cb", "horovodrun", "", kRefused,
     "it starts nothing: run horovodrun --check-build; 'dtrun doctor' checks what dtrun uses"},
    {"--start-timeout=", "horovodrun", "--set cluster.join_timeout={s}", kRefused},
    {"--reset-limit=", "horovodrun", "--set restart.max={}"},
    {"--min-np= --min-num-proc= --max-np= --max-num-proc= --host-discovery-script= --slots-per-host= --slots= "
     "--elastic-timeout= --blacklist-cooldown-range==", "horovodrun", "", kRefused, kRestarts},
    {"--ssh-port=", "horovodrun, deepspeed", "--set cluster.remote_shell=[\"ssh\",\"-p\",\"{}\"]", kRefused,
     "or put the port into ~/.ssh/config"},
    {"--ssh-identity-file=", "horovodrun", "--set cluster.remote_shell=[\"ssh\",\"-i\",\"{}\"]", kRefused,
     "or put the file into ~/.ssh/config"},
    {"--mpi-args= --binding-args=", "horovodrun", "", kUnread,
     "flags for mpirun are --set launcher.name=mpirun --set 'launcher.options.arguments=[\"FLAG\"]'"},
    {"--tcp --jsrun --torus-allreduce --log-with-timestamp --log-without-timestamp --log-hide-timestamp", "horovodrun",
     "", kUnread},
};

// Only in the launcher's own command line: in front of a program, they may be its options, or have another meaning.
constexpr ForeignFlag kOwnFlags[] = {
    {"-c=", "mpirun", "--ranks {}"},
    {"-N=", "mpirun", "--processes-per-host {}"},
    {"--version -V", "mpirun", "", kRefused, "it starts nothing: run mpirun --version"},
    {"--output=", "mpirun", "", kRefused,
     "lines have their rank in front (output.prefix), --set output.timestamps=true adds the time, and the run's folder "
     "has a file for each rank"},
    {"--debug", "mpirun", "", kUnread, kDebuggerAdvice},
    {"-p= --soft --arch= --file=", "mpirun", "", kUnread},

    {"-q= -H -b= -s --oversubscribe -d= -I", "srun", "", kRefused, kScheduler},
    {"-Q", "srun", "", kRefused, "dtrun's flag is -q, before the verb"},
    {"-V --version --usage", "srun", "", kRefused, "it starts nothing: run srun --help or --version"},
    {"-i=", "srun", "", kRefused, kStdin},
    {"-r=", "srun", "", kRefused, kNamedHosts},
    {"-c=", "srun", "--set job.env.OMP_NUM_THREADS={}", kRefused, kThreadsAdvice},
    {"-m=", "srun", "", kHarmless, kDistribution, "block *"},
    {"-x= --exclude=", "srun", "", kRefused, kNamedHosts},
    {"-e=", "srun", "", kUnread, kRankFiles},

    {"--gradient-accumulation-steps=", "accelerate", "--set job.env.ACCELERATE_GRADIENT_ACCUMULATION_STEPS={}"},
    {"--cpu --use-cpu", "accelerate", "--set job.env.ACCELERATE_USE_CPU=true"},
    {"--launcher=", "deepspeed", "", kUnread,
     "hosts are reached by ssh, or by a scheduler with --set cluster.from=auto"},
    {"-H=", "deepspeed", "--hostfile {}"},
    {"--mpi", "horovodrun", "--set launcher.name=mpirun"},
    {"--version -v", "horovodrun", "", kRefused, "it starts nothing: run horovodrun --version"},
    {"-i=", "horovodrun", "--set cluster.remote_shell=[\"ssh\",\"-i\",\"{}\"]", kRefused,
     "or put the file into ~/.ssh/config"},
    {"-p=", "horovodrun", "--set cluster.remote_shell=[\"ssh\",\"-p\",\"{}\"]", kRefused,
     "or put the port into ~/.ssh/config"},
    {"--config-file=", "horovodrun", "", kUnread,
     "write its entries as flags, or as variables: --set job.env.HOROVOD_CYCLE_TIME=3.5"},
};
// clang-format on

}  // namespace

std::span<const ForeignFlag> ForeignFlags() { return kFlags; }
std::span<const ForeignFlag> OwnForeignFlags() { return kOwnFlags; }

}  // namespace dtrun::cli
