// Measures throughput and cost of ordinary lines from a rank to the log and to the user.
//
//   output_bench [GB [BYTES_PER_READ]]
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/base/fd.h"
#include "core/output/output.h"

namespace {

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return double(time.tv_sec) + double(time.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int Measure(const char* name, const std::string& target, const std::filesystem::path& folder,
            double gigabytes, std::size_t read_size) {
  using namespace dtrun::output;
  const dtrun::UniqueFd fd(open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) {
    std::perror(target.c_str());
    return 1;
  }
  std::string lines;
  for (int i = 0; lines.size() < 1'000'000; ++i) {
    lines += "epoch 3 step " + std::to_string(i) + " loss 0.31415 accuracy 0.8765 samples/s 12345\n";
  }
  const auto start = std::chrono::steady_clock::now();
  const double cpu = CpuSeconds();
  double fed = 0;
  {
    const auto console = Console::Open(fd.get(), fd.get(), folder);
    if (console == nullptr) return 1;
    auto rank = RankOutput::Open({folder}, {0, 2}, {}, *console);
    if (!rank.ok()) {
      std::fprintf(stderr, "%s\n", rank.error().text.c_str());
      return 1;
    }
    for (std::size_t at = 0; fed < gigabytes * 1e9; at = at + read_size < lines.size() ? at + read_size : 0) {
      const std::string_view bytes = std::string_view(lines).substr(at, read_size);
      (*rank)->Feed(Stream::kOut, bytes);
      fed += double(bytes.size());
    }
    (*rank)->Close(Stream::kOut);
    if (!console->Drain(-1)) return 1;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double per_gigabyte = (CpuSeconds() - cpu) / (fed / 1e9);
  std::printf("%-10s reads of %6zu: %7.1f GB/min, %.2f CPU s per GB (%.1f %% of a core at 1 GB/min)\n", name,
              read_size, fed / 1e9 / seconds * 60, per_gigabyte, per_gigabyte / 60 * 100);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const double gigabytes = argc > 1 ? std::atof(argv[1]) : 1;
  const std::size_t read_size = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 65536;
  if (gigabytes <= 0 || read_size == 0) {
    std::fprintf(stderr, "usage: output_bench [GB [BYTES_PER_READ]]\n");
    return 2;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "dtrun-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 1;
  }
  const int failed = Measure("/dev/null", "/dev/null", folder, gigabytes, read_size) +
                     Measure("a file", folder + "/console", folder, gigabytes, read_size);
  std::filesystem::remove_all(folder);
  return failed;
}
