// The smallest launcher in C++: one process per host.
#include "dtrun/plugin.hpp"

namespace {

class OnePerHost final : public dtrun::sdk::Launcher {
 public:
  OnePerHost(const dtrun::sdk::Host&, const dtrun::sdk::Options&) {}
  void Plan(const dtrun::sdk::Job& job, const dtrun::sdk::PlanSink& sink) override {
    for (std::uint64_t i = 0; i < job.host_count(); ++i) {
      dtrun::sdk::Process process;
      process.host_index = static_cast<int>(i);
      process.rank = job.host(i).first_rank;
      process.rank_count = job.host(i).local_size;
      sink.Add(process);
    }
  }
};

constexpr const char* kSizes[] = {"small", "large"};
constexpr dtrun_option kOptions[] = {
    dtrun::sdk::Option("size", DTRUN_TYPE_STRING, "small", "an option for compilers to read")
        .Long("It changes nothing.")
        .Alias("IN_CXX_SIZE")
        .Choices(kSizes)};

}  // namespace

DTRUN_SDK_PLUGIN(OnePerHost, "in-cxx", "1.0", "dtrun tests", "MIT", "one process per host", kOptions, 1)
