// cuda.hpp - what CUDA and its driver say when they fail, whoever calls them.
//
// A constant; any thread.
#pragma once

#include "dtrun/known/failure.hpp"

namespace dtrun::known {
inline namespace v0 __attribute__((visibility("hidden"))) {

  inline constexpr KnownFailure kCuda[] = {
      {"cuda-peer-access",
       {"peer access is not supported between these two devices"},
       "CUDA error 217: two GPUs of this host cannot read each other's memory",
       "set backend.options.p2p = \"off\", or NCCL_P2P_DISABLE=1; when it remains, another library asks for "
       "it "
       "(custom all-reduce kernels, UCX's cuda_ipc: UCX_TLS=^cuda_ipc)",
       "CUDA runtime, TensorRT-LLM issue 1498",
       Depth::kCause,
       Kind::kUnsaid,
       kPeerAccess},
      {"cuda-driver-too-old",
       {"driver version is insufficient for CUDA runtime version", "driver version is insufficient",
        "The NVIDIA driver on your system is too old (found version {version})",
        "API call is not supported in the installed CUDA driver"},
       "the GPU driver is missing or older than the program's CUDA[: it is for {version}]",
       "update the driver, or use a program built for an older CUDA; `nvidia-smi` shows what the driver can",
       "CUDA runtime, torch"},
      {"cuda-no-driver",
       {"Found no NVIDIA driver on your system", "libcuda.so.1: cannot open shared object file",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver"},
       "this host has no working NVIDIA driver",
       "install or load it; in a container start with --gpus all; for a job without GPUs set backend.name = "
       "\"gloo\"",
       "torch, the dynamic linker"},
      {"cuda-no-device",
       {"no CUDA-capable device is detected", "No CUDA GPUs are available", "no CUDA-capable device"},
       "this process sees no GPU",
       "check `nvidia-smi` and CUDA_VISIBLE_DEVICES; an empty value hides all",
       "CUDA runtime, torch"},
      {"cuda-invalid-device",
       {"invalid device ordinal"},
       "the program asked for a GPU that this process does not see",
       "start no more ranks than GPUs (job.processes_per_host = \"gpu\") and use the device LOCAL_RANK; with "
       "job.gpu_visibility = \"own\" it is device 0",
       "CUDA runtime"},
      {"cuda-out-of-memory",
       {"CUDA out of memory. Tried to allocate {size} {unit}.", "CUDA error: out of memory",
        "Cuda failure 'out of memory'", "CUDNN_STATUS_ALLOC_FAILED"},
       "a GPU's memory is full[: {size} {unit} more were asked for]",
       "use a smaller batch, or look with `nvidia-smi` for other processes on it; for NCCL's own part lower "
       "backend.options.max_ctas",
       "torch, CUDA runtime"},
      {"cuda-illegal-access",
       {"an illegal memory access was encountered"},
       "a GPU kernel used memory that it does not own",
       "run once with CUDA_LAUNCH_BLOCKING=1 in job.env: then the traceback shows the kernel",
       "CUDA runtime"},
      {"cuda-device-assert",
       {"device-side assert triggered"},
       "a check inside a GPU kernel failed: mostly an index or a label out of range",
       "run once with CUDA_LAUNCH_BLOCKING=1 in job.env, or on the CPU: then the traceback shows the place",
       "CUDA runtime"},
      {"cuda-ecc",
       {"uncorrectable ECC error encountered"},
       "a GPU's memory is damaged",
       "take the host out of cluster.hosts; `nvidia-smi -q -d ECC` shows the device",
       "CUDA runtime"},
      {"cuda-gpu-lost",
       {"GPU has fallen off the bus", "GPU is lost", "NVRM: Xid (PCI:{bus}): {xid},"},
       "the driver lost or reset a GPU[ ({bus}, Xid {xid})]",
       "look in `dmesg` for Xid lines; the host needs a reboot or a new GPU",
       "the NVIDIA driver"},
      {"cuda-driver-mismatch",
       {"Driver/library version mismatch"},
       "the loaded GPU driver is another version than its library: it was updated under a running system",
       "reboot the host, or reload the driver's kernel module",
       "NVML"},
      {"cuda-fork",
       {"Cannot re-initialize CUDA in forked subprocess"},
       "a process was forked after CUDA had been used",
       "use multiprocessing.set_start_method(\"spawn\"), also for DataLoader workers that touch the GPU",
       "torch"},
      {"cuda-no-kernel",
       {"no kernel image is available for execution on the device",
        "is not compatible with the current PyTorch installation"},
       "the program was not built for this kind of GPU",
       "install a build for its compute capability",
       "CUDA runtime, torch"},
      {"cuda-busy",
       {"all CUDA-capable devices are busy or unavailable"},
       "the GPU is reserved for one process, which another one is",
       "start one rank a GPU, or `nvidia-smi -c DEFAULT`",
       "CUDA runtime"},
      {"cuda-fabric-manager",
       {"CUDA error: system not yet initialized", "Cuda failure 'system not yet initialized'"},
       "CUDA error 802: the NVSwitch fabric is not up",
       "start nvidia-fabricmanager of the driver's version on this host",
       "CUDA runtime"},
  };

}  // namespace )
}  // namespace dtrun::known
