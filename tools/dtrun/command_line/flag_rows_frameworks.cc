// Flags of horovodrun, accelerate launch and deepspeed.
#include "tools/dtrun/command_line/flag_rows.h"

namespace dtrun::cli {
namespace {

using enum Reading;

constexpr std::string_view kIdentity =
    "write --set 'cluster.remote_shell=[\"ssh\",\"-i\",\"{}\"]', or the file into ~/.ssh/config";

constexpr ForeignFlag kHorovod[] = {
    {" --gloo ", "horovodrun", kFixed, "job.dialects=horovod"},
    {" --mpi ", "horovodrun", kFixed, "launcher.name=mpirun"},
    {" --network-interface --network-interfaces ", "horovodrun", kSetting, "network.interface"},
    {" --timeline-filename ", "horovodrun", kSetting, "job.env.HOROVOD_TIMELINE"},
    {" --timeline-mark-cycles ", "horovodrun", kFixed, "job.env.HOROVOD_TIMELINE_MARK_CYCLES=1"},
    {" --autotune ", "horovodrun", kFixed, "job.env.HOROVOD_AUTOTUNE=1"},
    {" --autotune-log-file ", "horovodrun", kSetting, "job.env.HOROVOD_AUTOTUNE_LOG"},
    {" --autotune-warmup-samples ", "horovodrun", kSetting, "job.env.HOROVOD_AUTOTUNE_WARMUP_SAMPLES"},
    {" --autotune-steps-per-sample ", "horovodrun", kSetting, "job.env.HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE"},
    {" --autotune-bayes-opt-max-samples ", "horovodrun", kSetting,
     "job.env.HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES"},
    {" --autotune-gaussian-process-noise ", "horovodrun", kSetting,
     "job.env.HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE"},
    {" --cycle-time-ms ", "horovodrun", kSetting, "job.env.HOROVOD_CYCLE_TIME"},
    {" --cache-capacity ", "horovodrun", kSetting, "job.env.HOROVOD_CACHE_CAPACITY"},
    {" --disable-cache ", "horovodrun", kFixed, "job.env.HOROVOD_CACHE_CAPACITY=0"},
    {" --no-stall-check ", "horovodrun", kFixed, "job.env.HOROVOD_STALL_CHECK_DISABLE=1"},
    {" --stall-check-warning-time-seconds ", "horovodrun", kSetting,
     "job.env.HOROVOD_STALL_CHECK_TIME_SECONDS"},
    {" --stall-check-shutdown-time-seconds ", "horovodrun", kSetting,
     "job.env.HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"},
    {" --hierarchical-allreduce ", "horovodrun", kFixed, "job.env.HOROVOD_HIERARCHICAL_ALLREDUCE=1"},
    {" --hierarchical-allgather ", "horovodrun", kFixed, "job.env.HOROVOD_HIERARCHICAL_ALLGATHER=1"},
    {" --num-nccl-streams ", "horovodrun", kSetting, "job.env.HOROVOD_NUM_NCCL_STREAMS"},
    {" --thread-affinity ", "horovodrun", kSetting, "job.env.HOROVOD_THREAD_AFFINITY"},
    {" --gloo-timeout-seconds ", "horovodrun", kSetting, "job.env.HOROVOD_GLOO_TIMEOUT_SECONDS"},
    {" --mpi-threads-disable ", "horovodrun", kFixed, "job.env.HOROVOD_MPI_THREADS_DISABLE=1"},
    {" --prefix-output-with-timestamp ", "horovodrun", kFixed, "output.timestamps=true"},
    {" --no-autotune --no-timeline --no-timeline-mark-cycles --stall-check --no-hierarchical-allreduce "
     "--no-hierarchical-allgather --no-mpi-threads-disable --no-torus-allreduce ",
     "horovodrun", kNothing, "this is Horovod's default"},
    {" --fusion-threshold-mb ", "horovodrun", kRefused,
     "its variable has bytes: --set job.env.HOROVOD_FUSION_THRESHOLD=$(({} * 1048576))"},
    {" --log-level ", "horovodrun", kRefused,
     "write --set job.env.HOROVOD_LOG_LEVEL={}; for dtrun itself, set its variable DTRUN_LOG=info"},
    {" --version -v ",
     "horovodrun",
     kRefused,
     "it starts nothing: run horovodrun --version",
     {},
     {},
     kCertain},
    {" --check-build -cb ", "horovodrun", kRefused,
     "it starts nothing: run horovodrun --check-build; 'dtrun doctor' checks what dtrun uses"},
    {" --start-timeout ", "horovodrun", kRefused, "write --set cluster.join_timeout={s}"},
    {" --reset-limit ", "horovodrun", kSetting, "restart.max"},
    {" --min-np --min-num-proc --max-np --max-num-proc --host-discovery-script --slots-per-host --slots "
     "--elastic-timeout --blacklist-cooldown-range ",
     "horovodrun", kRefused,
     "jobs that grow and shrink count hosts: --set cluster.min_hosts=N, with restart.max"},
    {" --ssh-port ", "horovodrun, deepspeed", kRefused,
     "write --set 'cluster.remote_shell=[\"ssh\",\"-p\",\"{}\"]', or the port into ~/.ssh/config"},
    {" --ssh-identity-file ", "horovodrun", kRefused, kIdentity},
    {" -i ", "horovodrun", kRefused, kIdentity, {}, {}, kCertain},
    {" --mpi-args --binding-args ", "horovodrun", kUnread,
     "flags for mpirun are --set launcher.name=mpirun --set 'launcher.options.arguments=[\"FLAG\"]'"},
    {" --config-file ", "horovodrun", kUnread,
     "write its entries as flags, or as variables: --set job.env.HOROVOD_CYCLE_TIME=3.5"},
    {" --tcp --jsrun --torus-allreduce --log-with-timestamp --log-without-timestamp --log-hide-timestamp ",
     "horovodrun", kUnread, ""},
};

constexpr ForeignFlag kFrameworks[] = {
    {" --multi-gpu ", "accelerate", kRefused, "write -n gpu, a rank for each GPU of a host"},
    {" --machine-rank ", "accelerate", kRefused,
     "dtrun's flag is --host-index {}, with cluster.connect = \"manual\""},
    {" --mixed-precision ", "accelerate", kSetting, "job.env.ACCELERATE_MIXED_PRECISION"},
    {" --gradient-accumulation-steps ",
     "accelerate",
     kSetting,
     "job.env.ACCELERATE_GRADIENT_ACCUMULATION_STEPS",
     {},
     {},
     kCertain},
    {" --num-cpu-threads-per-process ", "accelerate", kSetting, "job.env.OMP_NUM_THREADS"},
    {" --cpu --use-cpu ", "accelerate", kFixed, "job.env.ACCELERATE_USE_CPU=true", {}, {}, kCertain},
    {" --cpu --use-cpu ", "accelerate", kRefused,
     "write --set job.env.ACCELERATE_USE_CPU=true, with -n 4 for the number of ranks"},
    {" --gpu-ids ", "accelerate", kRefused, "write CUDA_VISIBLE_DEVICES={} in front of dtrun"},
    {" --same-network ", "accelerate", kNothing, "dtrun tests which network connects the hosts"},
    {" --enable-cpu-affinity --bind-cores-to-rank ", "accelerate, deepspeed", kFixed, "job.bind=compact"},
    {" --bind-core-list ", "deepspeed", kRefused, kBindingAdvice},
    {" --main-process-ip ", "accelerate", kRefused, kAddressAdvice},
    {" --main-process-port ", "accelerate", kRefused,
     "leave it out: rank 0 gets a free port, or the one of --set job.master_port={}"},
    {" --config-file ", "accelerate", kUnread,
     "write what it sets as flags: -n for num_processes, --hosts for machines, --mixed-precision"},
    {" --use-deepspeed --zero-stage --zero3-init-flag --zero3-save-16bit-model --offload-optimizer-device "
     "--offload-param-device --offload-optimizer-nvme-path --offload-param-nvme-path --gradient-clipping "
     "--deepspeed-config-file --deepspeed-multinode-launcher --deepspeed-moe-layer-cls-names ",
     "accelerate", kUnread,
     "leave it out, and set it in the script: Accelerator(deepspeed_plugin=DeepSpeedPlugin(...))"},
    {" --deepspeed-inclusion-filter ", "accelerate", kSetting, "cluster.include"},
    {" --deepspeed-exclusion-filter ", "accelerate", kSetting, "cluster.exclude"},
    {" --use-fsdp --fsdp-* ", "accelerate", kUnread,
     "leave it out, and set it in the script: Accelerator(fsdp_plugin=FullyShardedDataParallelPlugin(...))"},
    {" --use-megatron-lm --megatron-lm-* ", "accelerate", kUnread,
     "leave it out, and set it in the script: Accelerator(megatron_lm_plugin=MegatronLMPlugin(...))"},
    {" --dynamo-* ", "accelerate", kUnread,
     "leave it out, and set it in the script: Accelerator(dynamo_backend=...)"},
    {" --tpu --vm --tpu-* --no-tpu-cluster --main-training-function --downcast-bf16 --ipex --use-xpu "
     "--use-mps-device --fp8-* --aws-* --mpirun-ccl ",
     "accelerate", kUnread, ""},

    {" -H ", "deepspeed", kOption, "--hostfile", {}, {}, kCertain},
    {" --include -i ", "deepspeed", kSetting, "cluster.include"},
    {" --exclude -e ", "deepspeed", kSetting, "cluster.exclude"},
    {" --no-local-rank ", "deepspeed", kNothing,
     "dtrun adds no --local_rank to the script's arguments, which has the variable LOCAL_RANK"},
    {" --min-elastic-nodes --max-elastic-nodes --elastic-training ", "deepspeed", kRefused,
     "jobs that grow and shrink count hosts: --set cluster.min_hosts=N, with restart.max"},
    {" --launcher --launcher-args ", "deepspeed", kUnread,
     "hosts are reached by ssh, or by a scheduler with --set cluster.from=auto"},
    {" --force-multi --no-ssh-check ", "deepspeed", kNothing,
     "dtrun reaches each host before the job starts"},
    {" --no-ssh ", "deepspeed", kUnread,
     "where every host runs the command itself, write --set cluster.connect=manual and --host-index N"},
    {" --enable-each-rank-log ", "deepspeed", kSetting, "logs.dir"},
    {" --save-pid --autotuning --venv-script ", "deepspeed", kUnread, ""},
    {" --deepspeed --deepspeed-config ", "DeepSpeed's scripts", kRefused,
     "options of the script go after it: dtrun -n 4 train.py --deepspeed ds.json"},
};

}  // namespace

std::span<const ForeignFlag> HorovodFlags() { return kHorovod; }
std::span<const ForeignFlag> FrameworkFlags() { return kFrameworks; }

}  // namespace dtrun::cli
