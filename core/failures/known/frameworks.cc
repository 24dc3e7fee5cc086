#include "core/failures/known/tables.h"

namespace dtrun::failures {
namespace {

using known::Depth;
using known::Kind;

constexpr KnownFailure kFrameworksTable[] = {
    {"horovod-not-built",
     {"Extension {extension} has not been built: {file} not found"},
     "Horovod was installed without {extension}",
     "HOROVOD_WITH_PYTORCH=1 pip install --no-build-isolation --force-reinstall horovod, after torch",
     "Horovod common/util.py, issues 2589 and 3507"},
    {"horovod-shapes-differ",
     {"Mismatched {operation} tensor shapes: One rank sent a tensor of {rest...}",
      "Mismatched data types: One rank had type {rest...}",
      "Mismatched operations: One rank did an {rest...}"},
     "Horovod's ranks called different things for one tensor[ in {operation}]: one had {rest}",
     "make all ranks build the same model and call the same operations",
     "Horovod controller.cc"},
    {"horovod-interfaces",
     {"Unable to find a set of common task-to-task communication interfaces"},
     "Horovod found no interface name that all hosts share",
     "start the ranks by dtrun, which needs no equal names, or give horovodrun --network-interfaces",
     "Horovod runner/driver, issue 2568",
     Depth::kCause,
     Kind::kNetwork},
    {"horovod-service",
     {"Horovod was unable to connect to {service} on any of the following addresses: {addresses...}"},
     "Horovod cannot reach its {service} at {addresses}",
     "name a usable interface with --network-interfaces or HOROVOD_GLOO_IFACE",
     "Horovod runner/common",
     Depth::kCause,
     Kind::kNetwork},
    {"horovod-not-initialized",
     {"Horovod has not been initialized; use hvd.init()"},
     "the program used Horovod before hvd.init()",
     "call hvd.init() first",
     "Horovod operations.cc"},
    {"horovod-stalled",
     {"One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks"},
     "some ranks wait in Horovod for others, which do something else",
     "look what the missing ranks do",
     "Horovod stall_inspector.cc",
     Depth::kSymptom},
    {"horovod-shut-down",
     {"Horovod has been shut down. This was caused by an exception on one of the ranks"},
     "another rank of Horovod failed first",
     "look at the first failure of another rank",
     "Horovod operations.cc",
     Depth::kSymptom,
     Kind::kNetwork},
    {"deepspeed-batch-size",
     {"train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size{equation...}"},
     "DeepSpeed's batch sizes do not fit the number of ranks: {equation}",
     "change train_batch_size, train_micro_batch_size_per_gpu or gradient_accumulation_steps in its config, "
     "or "
     "job.processes_per_host",
     "DeepSpeed runtime/config.py"},
    {"deepspeed-cuda-version",
     {"Installed CUDA version {installed} does not match the version torch was compiled with {wanted},",
      "does not match the version torch was compiled with {wanted},"},
     "nvcc is for another CUDA than torch[: {installed}, not {wanted}]",
     "install that version of the CUDA toolkit, or set DS_SKIP_CUDA_CHECK=1 in job.env when only the minor "
     "number differs",
     "DeepSpeed op_builder/builder.py"},
    {"deepspeed-no-nvcc",
     {"CUDA_HOME does not exist, unable to compile CUDA op(s)"},
     "DeepSpeed wants to compile a GPU kernel and finds no CUDA toolkit",
     "install it and set CUDA_HOME in job.env, or install DeepSpeed with its kernels built",
     "DeepSpeed op_builder/builder.py"},
    {"deepspeed-loss-scale",
     {"Current loss scale already at minimum - cannot decrease scale anymore"},
     "gradients overflow at every loss scale: the loss diverged",
     "lower the learning rate, or train in bfloat16",
     "DeepSpeed fp16/loss_scaler.py"},
    {"lightning-devices",
     {"return self.parallel_devices[self.local_rank]\nIndexError: list index out of range"},
     "Lightning was told of fewer devices than ranks run on this host",
     "set devices= of its Trainer to the ranks of a host (job.processes_per_host) and num_nodes= to the "
     "hosts",
     "Lightning strategies/ddp.py"},
    {"deepspeed-ssh",
     {"Command 'ssh -o PasswordAuthentication=no {host} hostname' returned non-zero exit status"},
     "DeepSpeed's launcher cannot reach {host} by ssh without a password",
     "make `ssh -o BatchMode=yes {host} true` work, or start with dtrun, whose error says what ssh prints",
     "DeepSpeed launcher/runner.py, issue 4907",
     Depth::kCause,
     Kind::kRendezvous},
    {"deepspeed-killed",
     {"exits with return code = -9"},
     "a rank under DeepSpeed's launcher was killed (SIGKILL)",
     "look in `dmesg` for the out-of-memory killer; the dtrun verdict says it when dtrun starts the ranks",
     "DeepSpeed launcher/launch.py, issue 3160",
     Depth::kSymptom},
};

}  // namespace

std::span<const KnownFailure> FrameworkFailures() { return kFrameworksTable; }

}  // namespace dtrun::failures
