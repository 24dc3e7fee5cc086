#include <limits>

#include "arguments.h"
#include "services.h"

namespace dtrun::services {
namespace {

std::uint64_t ElementBytes(const dtrun_host*, std::int32_t dtype) { return kernels::ElementBytes(dtype); }

std::int32_t HasMeaning(const dtrun_host*, std::int32_t dtype, std::int32_t reduce) {
  return kernels::Supports(dtype, reduce) ? 1 : 0;
}

dtrun_status Reduce(const dtrun_host*, const dtrun_reduction* given, dtrun_error* err) {
  return sdk::Guard(err, [&] {
    const dtrun_reduction reduction = Read(given, "the reduction");
    RequireMeaning(reduction.dtype, reduction.reduce);
    if (reduction.source_count < 1 || reduction.source_count > std::numeric_limits<std::int32_t>::max()) {
      throw sdk::Failure(DTRUN_INVALID_ARGUMENT, "a reduction of " + std::to_string(reduction.source_count) +
                                                     " sources; there must be at least 1");
    }
    if (reduction.count == 0) return dtrun_status{DTRUN_OK};
    Require(reduction.out, "dtrun_reduction.out");
    Require(reduction.sources, "dtrun_reduction.sources");
    for (std::uint64_t i = 0; i < reduction.source_count; ++i) Require(reduction.sources[i], "a source");
    kernels::ReduceFor(reduction.dtype, reduction.reduce)(
        reduction.out, reduction.sources, static_cast<int>(reduction.source_count), reduction.count);
    return dtrun_status{DTRUN_OK};
  });
}

dtrun_status Scale(const dtrun_host*, void* out, const void* in, std::uint64_t count, std::int32_t dtype,
                   double factor, dtrun_error* err) {
  return sdk::Guard(err, [&] {
    RequireMeaning(dtype, DTRUN_PREMUL_SUM);
    if (count == 0) return dtrun_status{DTRUN_OK};
    Require(out, "out");
    Require(in, "in");
    kernels::Scale(out, in, count, dtype, factor);
    return dtrun_status{DTRUN_OK};
  });
}

}  // namespace

const dtrun_kernels_service* Kernels() {
  static constexpr dtrun_kernels_service kService{
      sizeof(dtrun_kernels_service), 0, &ElementBytes, &HasMeaning, &Reduce, &Scale};
  return &kService;
}

}  // namespace dtrun::services
