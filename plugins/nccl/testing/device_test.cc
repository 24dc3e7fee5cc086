// The real library on a real device: one rank, and several ranks on the one device, each a host
// of its own to NCCL (NCCL_HOSTID), so that they meet over sockets. Skipped without a device.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <iostream>
#include <vector>

#include "child.h"
#include "plugins/cuda/cuda_abi.h"
#include "sdk/conformance/subject.h"

namespace dtrun::nccl_test {
namespace {

using conformance::AllreduceOp;
using conformance::BackendUnderTest;
using conformance::FolderKv;
using conformance::Outcome;
using conformance::Rank;
using conformance::Subject;

BackendUnderTest RealBackend() {
  BackendUnderTest backend{.plugin = PluginFile()};
  const std::string file = LibraryFile();
  if (!file.empty()) backend.options["library"] = file;
  return backend;
}

// The reason why nothing can be tried here; empty when it can.
std::string Obstacle() {
  const std::string file = LibraryFile();
  if (dlopen(file.empty() ? "libnccl.so.2" : file.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr)
    return "this machine has no libnccl.so.2; set NCCL_LIBRARY when configuring";
  const std::string device = Subject(RealBackend()).LaunchInfo(1).facts.at("device");
  return device.rfind("none: ", 0) == 0 ? device : "";
}

// Memory of the device, copied to and from the host. Uses the runtime that the plugin loaded.
class Device {
 public:
  Device() {
    for (const char* name : {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}) {
      if (image_ == nullptr) image_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    Find("cudaMalloc", allocate_);
    Find("cudaFree", release_);
    Find("cudaMemcpy", copy_);
  }
  void* Allocate(std::size_t bytes) const {
    void* memory = nullptr;
    if (allocate_(&memory, bytes) != cuda::kSuccess) throw std::runtime_error("the device is out of memory");
    return memory;
  }
  void Release(void* memory) const { release_(memory); }
  void Copy(void* to, const void* from, std::size_t bytes) const {
    constexpr int kDefault = 4;  // cudaMemcpyDefault
    if (copy_(to, from, bytes, kDefault) != cuda::kSuccess) throw std::runtime_error("a copy failed");
  }

 private:
  template <class Function>
  void Find(const char* name, Function*& out) {
    out = image_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(image_, name));
    if (out == nullptr) throw std::runtime_error(std::string("the CUDA runtime has no ") + name);
  }
  void* image_ = nullptr;
  cuda::Error (*allocate_)(void**, std::size_t) = nullptr;
  cuda::Error (*release_)(void*) = nullptr;
  cuda::Error (*copy_)(void*, const void*, std::size_t, int) = nullptr;
};

using Floats = std::vector<float>;

// Runs `op` of float32 with these values in device memory; what `recv` holds then.
Floats Run(const Device& device, Rank& rank, dtrun_op op, const Floats& send, std::size_t recv_count) {
  Floats result(recv_count, -1);
  void* const from = device.Allocate(send.size() * sizeof(float) + 1);
  void* const to = device.Allocate(recv_count * sizeof(float) + 1);
  device.Copy(from, send.data(), send.size() * sizeof(float));
  device.Copy(to, result.data(), recv_count * sizeof(float));
  op.send = from;
  op.recv = to;
  op.dtype = DTRUN_FLOAT32;
  const Outcome outcome = rank.Do(op);
  if (!outcome.ok()) throw std::runtime_error(outcome.text);
  device.Copy(result.data(), to, recv_count * sizeof(float));
  device.Release(from);
  device.Release(to);
  return result;
}

dtrun_op Op(std::int32_t kind, std::uint64_t count, std::int32_t reduce = 0, int root = -1) {
  dtrun_op op = AllreduceOp(nullptr, nullptr, count, DTRUN_FLOAT32, reduce);
  op.kind = kind;
  op.root = root;
  return op;
}

void Expect(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string("wrong result of ") + what);
}

// Every operation once, with values that tell ranks and places apart.
void TryAll(Rank& rank) {
  const Device device;
  constexpr std::size_t kCount = 1000;
  const auto size = static_cast<std::size_t>(rank.size());
  const auto self = static_cast<std::size_t>(rank.rank());
  const auto value = [](std::size_t from, std::size_t i) { return static_cast<float>(from * 10000 + i); };
  const auto values = [&](std::size_t from, std::size_t count) {
    Floats all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = value(from, i);
    return all;
  };
  const auto sum = [&](std::size_t i) {
    float total = 0;
    for (std::size_t from = 0; from < size; ++from) total += value(from, i);
    return total;
  };
  const auto equals = [](const Floats& got, const std::function<float(std::size_t)>& expected) {
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i] != expected(i)) return false;
    }
    return true;
  };
  const int last = rank.size() - 1;
  const Floats own = values(self, kCount);
  const Floats wide = values(self, kCount * size);

  Expect(rank.Barrier().ok(), "barrier");
  Expect(equals(Run(device, rank, Op(DTRUN_ALLREDUCE, kCount, DTRUN_SUM), own, kCount), sum), "allreduce");
  dtrun_op scaled = Op(DTRUN_ALLREDUCE, kCount, DTRUN_PREMUL_SUM);
  scaled.scale = 2;
  Expect(equals(Run(device, rank, scaled, own, kCount), [&](auto i) { return 2 * sum(i); }), "premul-sum");
  const Floats reduced = Run(device, rank, Op(DTRUN_REDUCE, kCount, DTRUN_SUM, last), own, kCount);
  Expect(rank.rank() != last || equals(reduced, sum), "reduce");
  Expect(equals(Run(device, rank, Op(DTRUN_ALLGATHER, kCount), own, kCount * size),
                [&](auto i) { return value(i / kCount, i % kCount); }),
         "allgather");
  Expect(equals(Run(device, rank, Op(DTRUN_REDUCE_SCATTER, kCount, DTRUN_SUM), wide, kCount),
                [&](auto i) { return sum(self * kCount + i); }),
         "reduce-scatter");
  Expect(equals(Run(device, rank, Op(DTRUN_ALLTOALL, kCount), wide, kCount * size),
                [&](auto i) { return value(i / kCount, self * kCount + i % kCount); }),
         "alltoall");
  const Floats gathered = Run(device, rank, Op(DTRUN_GATHER, kCount, 0, last), own, kCount * size);
  Expect(rank.rank() != last || equals(gathered, [&](auto i) { return value(i / kCount, i % kCount); }),
         "gather");
  Expect(equals(Run(device, rank, Op(DTRUN_SCATTER, kCount, 0, last), wide, kCount),
                [&](auto i) { return value(size - 1, self * kCount + i); }),
         "scatter");
  std::vector<std::uint64_t> counts(size);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < size; ++i) total += counts[i] = i + 1;
  dtrun_op uneven = Op(DTRUN_ALLGATHERV, 0);
  uneven.recv_counts = counts.data();
  Expect(equals(Run(device, rank, uneven, values(self, self + 1), total),
                [&](auto i) {
                  std::size_t from = 0;
                  while (i >= counts[from]) i -= counts[from++];
                  return value(from, i);
                }),
         "allgatherv");
  if (size > 1 && self < 2) {
    dtrun_op message = Op(self == 0 ? DTRUN_SEND : DTRUN_RECV, kCount);
    message.peer = static_cast<int>(1 - self);
    const Floats got = Run(device, rank, message, own, kCount);
    Expect(self == 0 || equals(got, [&](auto i) { return value(0, i); }), "message");
  }
  float on_host = 0;
  Outcome refusal;
  Expect(rank.Start(AllreduceOp(&on_host, &on_host, 1, DTRUN_FLOAT32, DTRUN_SUM), &refusal) == nullptr &&
             refusal.code == DTRUN_UNSUPPORTED,
         "an operation on host memory");
}

// A rank in a process of its own; 0 when all went well.
int PlayInProcess(const std::string& folder, int number, int size) {
  setenv("NCCL_HOSTID", ("dtrun-" + std::to_string(number)).c_str(), 1);
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  setenv("NCCL_NET", "Socket", 1);
  setenv("NCCL_IB_DISABLE", "1", 1);
  BackendUnderTest backend = RealBackend();
  backend.options["max_ctas"] = "2";
  const Subject subject(backend);
  FolderKv kv(folder);
  Outcome outcome;
  const auto rank = subject.Join(&kv, number, size, conformance::kPatience, &outcome);
  if (rank == nullptr) throw std::runtime_error(outcome.text);
  TryAll(*rank);
  return 0;
}

void PlayOnOneDevice(int size) {
  std::string folder = (std::filesystem::temp_directory_path() / "dtrun-nccl-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::vector<pid_t> children;
  for (int number = 0; number < size; ++number) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int code = 1;
      try {
        code = PlayInProcess(folder, number, size);
      } catch (const std::exception& error) {
        std::cerr << "rank " << number << ": " << error.what() << std::endl;
      }
      _exit(code);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  std::filesystem::remove_all(folder);
}

class NcclDevice : public ::testing::TestWithParam<int> {};

TEST_P(NcclDevice, ServesAllOperations) {
  // The parent must not touch the device: a forked child could not use it then.
  if (const std::string obstacle = InChild(Obstacle); !obstacle.empty()) GTEST_SKIP() << obstacle;
  PlayOnOneDevice(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Worlds, NcclDevice, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace dtrun::nccl_test
