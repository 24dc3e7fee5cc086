// Flags of Open MPI's mpirun, and of mpiexec of MPICH and Intel MPI. Open MPI also accepts its long flags
// with one dash; they are listed with two.
#include "tools/dtrun/command_line/flag_rows.h"

namespace dtrun::cli {
namespace {

using enum Reading;

constexpr std::string_view kPlanAdvice =
    "'dtrun plan' in place of 'dtrun' shows hosts, ranks and processors, and starts nothing";
constexpr std::string_view kRankFiles =
    "leave it out: the run's folder has a file for each rank (--set logs.dir=DIR chooses it)";
constexpr std::string_view kReportAdvice =
    "leave it out; 'dtrun explain latest' reports on a run, with the ranks' stacks where they hung";
constexpr std::string_view kOneProgram =
    "a dtrun job has one program: let it branch on the variable RANK, or write sh -c 'case $RANK in ...'";

constexpr std::string_view kDebuggerAdvice =
    "start the debugger as the program: dtrun -n 2 gdb -batch -ex run --args PROGRAM";

constexpr ForeignFlag kMpi[] = {
    {" --version -V ", "mpirun", kRefused, "it starts nothing: run mpirun --version", {}, {}, kCertain},
    {" -x --set-env ", "mpirun", kVariable, ""},
    {" --unset-env ", "mpirun", kRefused,
     "ranks have the environment that dtrun has: write env -u {} dtrun ..."},
    {" --append-env --prepend-env ", "mpirun", kUnread,
     "ranks have the environment that dtrun has: export the variable, with the part added, before dtrun"},
    {" --fwd-environment ", "mpirun", kNothing, kInherited},
    {" -env -genv ", "mpiexec", kPair, "job.env."},
    {" -genvall -envall ", "mpiexec", kNothing, kInherited},
    {" -genvlist -envlist ", "mpiexec", kNothingOf, kInherited},
    {" -genvnone -envnone ", "mpiexec", kRefused,
     "ranks have the environment that dtrun has: write env -i dtrun ..."},
    {" --env ", "mpirun", kRefused, kSetVariable},
    {" --mca --gmca --omca --gomca ", "mpirun", kPair, "job.env.OMPI_MCA_"},
    {" --prtemca ", "mpirun", kPair, kMpirunsOwn},
    {" --pmixmca --gpmixmca ", "mpirun", kPair, "job.env.PMIX_MCA_"},
    {" --am --amca --tune ", "mpirun", kUnread, "give each parameter with --mca NAME VALUE"},
    {" --bind-to --bindto ", "mpirun", kWord, "job.bind",
     "core=core hwthread=compact numa=per-numa socket=per-socket package=per-socket none=none"},
    {" --bind-to-core ", "mpirun", kFixed, "job.bind=core"},
    {" --bind-to-socket ", "mpirun", kFixed, "job.bind=per-socket"},
    {" --map-by --mapby --rank-by --rankby ", "mpirun", kMpirun,
     "ranks fill one host after another, as by slot; ppr:N:node: use --processes-per-host N (there is no "
     "round-robin over hosts); --set job.bind=spread spreads the ranks of a host over its NUMA nodes"},
    {" --npersocket --ppr ", "mpirun", kMpirun,
     "--processes-per-host N counts the ranks of a host, and --set job.bind=per-socket gives each the "
     "processors of its sockets"},
    {" --cpu-list --cpu-set --cf --cartofile -membind ", "mpirun", kMpirun, kBindingAdvice},
    {" --byslot --bycore ", "mpirun", kNothing, "ranks fill each host before the next"},
    {" --bynode ", "mpirun", kRefused,
     "ranks are numbered along the hosts, and fill each; --set launcher.name=mpirun --set "
     "'launcher.options.arguments=[\"--bynode\"]' keeps mpirun's mapping"},
    {" --cpus-per-proc --cpus-per-rank ", "mpirun", kRefused, kThreadsAdvice},
    {" --use-hwthread-cpus ", "mpirun", kUnread,
     "leave it out; --hosts NAME:SLOTS says how many ranks a host takes, and --set "
     "cluster.oversubscribe=true "
     "lets it take more"},
    {" --rankfile -rankfile -rf ", "mpirun", kRefused,
     "name hosts and slots, --hosts a:2,b:4, which are filled in order; --set job.bind=compact or spread "
     "chooses processors, and --set launcher.name=mpirun keeps mpirun's mapping"},
    {" --wdir --wd --chdir -D ", "mpirun, srun", kSetting, "job.cwd"},
    {" --oversubscribe ", "mpirun", kFixed, "cluster.oversubscribe=true"},
    {" --nooversubscribe ", "mpirun", kFixed, "cluster.oversubscribe=false"},
    {" --nolocal -skip-launch-node ", "mpirun", kRefused,
     "name the hosts of the job alone: --hosts node1,node2"},
    {" --allow-run-as-root ", "mpirun", kNothing, "root needs no permission here"},
    {" --tag-output -l --label -prepend-rank ", "mpirun, srun", kNothing,
     "lines have their rank in front where there are several (output.prefix)"},
    {" --timestamp-output ", "mpirun", kFixed, "output.timestamps=true"},
    {" --report-bindings ", "mpirun", kNothing,
     "the header's line 'binding' says which processors ranks are bound to, if they are (-v: always), and "
     "'dtrun "
     "plan' shows each rank's"},
    {" --display ", "mpirun", kRefused, kPlanAdvice, {}, {}, kCertain},
    {" --display-allocation --display-devel-allocation --display-devel-map --display-diffable-map "
     "--display-topo --do-not-launch ",
     "mpirun", kRefused, kPlanAdvice},
    {" --pernode ", "mpirun", kFixed, "job.processes_per_host=1"},
    {" --max-restarts ", "mpirun", kSetting, "restart.max"},
    {" --add-host --add-hostfile ", "mpirun", kUnread, "name all hosts of the job: --hosts node1,node2"},
    {" --prefix ", "mpirun", kRefused,
     "leave it out: ranks have dtrun's environment; to name another installation: --set "
     "job.env.LD_LIBRARY_PATH={}/lib"},
    {" --noprefix ", "mpirun", kNothing, kInherited},
    {" --path ", "mpirun", kRefused,
     "write the program with its folder, {}/PROGRAM, or put that folder into PATH"},
    {" --merge-stderr-to-stdout ", "mpirun", kRefused, "write 2>&1 behind dtrun's command line"},
    {" --output-filename --output-directory -outfile-pattern -errfile-pattern ", "mpirun, mpiexec", kRefused,
     kRankFiles},
    {" --output ",
     "mpirun",
     kRefused,
     "lines have their rank in front (output.prefix), --set output.timestamps=true adds the time, and the "
     "run's "
     "folder has a file for each rank",
     {},
     {},
     kCertain},
    {" --stream-buffering ", "mpirun", kUnread,
     "leave it out: dtrun passes each line on at once; the C library's buffering is set by stdbuf: stdbuf "
     "-oL "
     "PROGRAM"},
    {" --timeout ", "mpirun", kRefused,
     "write --time-limit {s} to limit the whole job, --set backend.timeout={s} to limit an operation, or "
     "--set cluster.join_timeout={s} to limit joining ('dtrun doctor' has its own --timeout)"},
    {" --spawn-timeout ", "mpirun", kRefused, "write --set cluster.join_timeout={s}"},
    {" --rtos --runtime-options ", "mpirun", kUnread,
     "a rank that fails ends the job; --set restart.max=N starts it again"},
    {" --forward-signals ", "mpirun", kUnread,
     "leave it out: TERM, INT, HUP and QUIT end the job, and USR1, USR2 and WINCH reach each rank"},
    {" --report-state-on-timeout --get-stack-traces ", "mpirun", kUnread, kReportAdvice},
    {" --stdin ", "mpirun", kDefault, "rank 0 reads dtrun's stdin, and the others read an empty one", "0",
     "rank 0 reads dtrun's stdin"},
    {" --app -configfile ", "mpirun, mpiexec", kRefused, kOneProgram},
    {" --iface -iface ", "mpiexec", kSetting, "network.interface"},
    {" -launcher -bootstrap -rmk ", "mpiexec", kUnread,
     "hosts are reached by ssh; under a scheduler write --set cluster.from=auto"},
    {" -launcher-exec --launch-agent ", "mpirun, mpiexec", kUnread,
     "the command that reaches a host is cluster.remote_shell: --set 'cluster.remote_shell=[\"ssh\"]'"},
    {" -gpus-per-proc ", "mpiexec", kUnread, "--set job.gpu_visibility=own gives each rank its own GPU"},
    {" -print-all-exitcodes -verbose -info --report-events --show-progress --debug-devel -d ",
     "mpirun, mpiexec", kUnread,
     "leave it out; -v prints all that dtrun chose, and a failed job's ranks are reported"},
    {" --tv --debugger --xterm --stop-on-exec --stop-in-init --stop-in-app ", "mpirun", kUnread,
     kDebuggerAdvice},
    {" --debug ", "mpirun", kUnread, kDebuggerAdvice, {}, {}, kCertain},
    {" --display-comm --display-comm-finalize --gpu-support --initial-errhandler --with-ft ", "mpirun",
     kUnread,
     "it is Open MPI's alone: --set launcher.name=mpirun with launcher.options.arguments has mpirun start "
     "the ranks"},
    {" --tmpdir ", "mpirun", kRefused, "write --set job.env.TMPDIR={}"},
    {" --max-vm-size --preload-binary -s --preload-files --set-cwd-to-session-dir --index-argv-by-rank "
     "--enable-recovery --disable-recovery --continuous --debug-daemons --debug-daemons-file "
     "--leave-session-attached --do-not-resolve --dvm --hnp --novm --ompi-server --output-proctable "
     "--personality --report-child-jobs-separately --report-pid --report-uri --use-regexp --xml --xml-file "
     "--fwd-mpirun-port --enable-instant-on-support --parseable --parsable --do-not-aggregate-help "
     "--test-suicide "
     "--app-pmix-prefix --no-app-prefix --pmix-prefix --pset --keepalive --no-ready-msg --system-server "
     "--set-sid "
     "--singleton --uniform-nodes --terminate ",
     "mpirun", kUnread, ""},
    {" -p --soft --arch --file ", "mpirun", kUnread, "", {}, {}, kCertain},
    {" -enable-x -disable-x -topolib -demux -profile -prepend-pattern -nameserver -disable-auto-cleanup "
     "-disable-hostname-propagation -order-nodes -localhost -usize -pmi-port ",
     "mpiexec", kUnread, ""},
};

constexpr std::string_view kFailureEndsAll = "a rank that fails ends the job";

// Parameters of mpirun and its daemons, in Open MPI 1 to 5 and PRRTE. `names`: as for flags.
constexpr ForeignFlag kParameters[] = {
    {" plm-rsh-agent pls-rsh-agent orte-rsh-agent plm-ssh-agent ", "mpirun", kSetting,
     "cluster.remote_shell"},
    {" plm-rsh-args plm-ssh-args ", "mpirun", kRefused,
     "write --set 'cluster.remote_shell=[\"ssh\", \"-p\", \"2222\"]' with the arguments '{}' in place of "
     "these"},
    {" hwloc-base-binding-policy hwloc-default-binding-policy ", "mpirun", kOption, "--bind-to"},
    {" rmaps-base-mapping-policy rmaps-base-ranking-policy rmaps-default-mapping-policy "
     "rmaps-default-ranking-policy ",
     "mpirun", kOption, "--map-by"},
    {" orte-default-hostfile prte-default-hostfile ", "mpirun", kOption, "--hostfile"},
    {" rmaps-base-oversubscribe ", "mpirun", kSetting, "cluster.oversubscribe"},
    {" orte-abort-on-non-zero-status ", "mpirun", kDefault,
     "a rank that fails ends the job; leave it out, and have the program exit with 0 where its failure is to "
     "be "
     "ignored",
     "1 true yes t y enabled", kFailureEndsAll},
    {" orte-tag-output orte-report-bindings orte-allow-run-as-root hwloc-base-report-bindings ", "mpirun",
     kNothingOf, "'dtrun plan' shows each rank's processors, and lines have their rank in front"},
    {" plm* pls* ras* rmaps* orte* prte* prrte* hwloc-* iof* odls* rml* routed* state* ess* oob* errmgr* "
     "filem* grpcomm* schizo* dfs* snapc* sstore* rtc* notifier* ",
     "mpirun", kNothingOf,
     "it is a parameter of mpirun itself, and dtrun starts the ranks; 'dtrun config list' lists dtrun's "
     "options"},
};

}  // namespace

std::span<const ForeignFlag> MpiFlags() { return kMpi; }

std::span<const ForeignFlag> MpirunParameters() { return kParameters; }

}  // namespace dtrun::cli
