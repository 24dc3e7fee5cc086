// libmpi: finds and opens it, refuses files that are not libmpi or belong to another MPI, and makes the
// counts and reductions that it lacks.
//
// A process has one MPI at most: an image that the program has already is used, whatever
// the plugin would have opened. Called from `init`; any thread.
#pragma once

#define OMPI_SKIP_MPICXX 1  // the C++ bindings would be linked
#include <mpi.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "dtrun/plugin.hpp"
#include "dtrun/plugin/names.hpp"
#include "dtrun/plugin/shared_library.hpp"

namespace dtrun::mpi_plugin {

[[noreturn]] void Fail(const char* call, int code, decltype(&::MPI_Error_string) error_string);

// What a libmpi has, by name. Nothing is linked: the types come from mpi.h, the addresses from the library.
class Symbols {
 public:
  // `linked`: the program itself was linked with the library.
  Symbols(void* image, bool linked, std::string path)
      : image_(image), linked_(linked), path_(std::move(path)) {}

  // Throws sdk::Failure when it is not there.
  sdk::Symbol operator[](const char* name) const;
  // The same, perhaps absent.
  sdk::Symbol Find(const char* name) const;

 private:
  void* image_;
  bool linked_;
  std::string path_;
};

template <class F>
class Function;
// A function of MPI, which throws when it fails. Constant; any thread.
template <class... Of>
class Function<int (*)(Of...)> {
 public:
  Function(const Symbols& symbols, const char* name)
      : name_(name), call_(symbols[name]), error_string_(symbols["MPI_Error_string"]) {}

  void operator()(Of... arguments) const {
    if (const int code = call_(arguments...); code != MPI_SUCCESS) Fail(name_, code, error_string_);
  }
  // Whether it succeeds.
  bool Try(Of... arguments) const { return call_(arguments...) == MPI_SUCCESS; }

 private:
  const char* name_;
  int (*call_)(Of...);
  decltype(&::MPI_Error_string) error_string_;
};

// clang-format off
#define DTRUN_MPI_FUNCTIONS(X)                                                                              \
  X(MPI_Initialized) X(MPI_Finalized) X(MPI_Init_thread) X(MPI_Query_thread) X(MPI_Finalize)                \
  X(MPI_Comm_rank) X(MPI_Comm_size) X(MPI_Comm_group) X(MPI_Comm_create_group) X(MPI_Comm_dup)              \
  X(MPI_Comm_dup_with_info) X(MPI_Info_create) X(MPI_Info_set) X(MPI_Info_free) X(MPI_Comm_free)            \
  X(MPI_Comm_set_errhandler) X(MPI_Comm_get_attr) X(MPI_Group_incl) X(MPI_Group_free) X(MPI_Allreduce)      \
  X(MPI_Reduce) X(MPI_Reduce_scatter) X(MPI_Bcast) X(MPI_Allgather) X(MPI_Allgatherv) X(MPI_Alltoall)       \
  X(MPI_Gather) X(MPI_Scatter) X(MPI_Barrier) X(MPI_Isend) X(MPI_Irecv) X(MPI_Test) X(MPI_Waitall)          \
  X(MPI_Cancel) X(MPI_Get_count) X(MPI_Type_contiguous) X(MPI_Type_create_struct) X(MPI_Type_commit)        \
  X(MPI_Type_free) X(MPI_Op_create)
// clang-format on

// The functions and handles of a libmpi. Constant; any thread.
struct Api {
  explicit Api(Symbols from) : symbols(std::move(from)) {}

  const Symbols symbols;
#define DTRUN_MPI_FUNCTION(name) const Function<decltype(&::name)> name{symbols, #name};
  DTRUN_MPI_FUNCTIONS(DTRUN_MPI_FUNCTION)
#undef DTRUN_MPI_FUNCTION

  // In Open MPI's mpi.h a predefined handle is the address of an object of the library.
  MPI_Comm comm_world = symbols["ompi_mpi_comm_world"];
  MPI_Errhandler errors_return = symbols["ompi_mpi_errors_return"];
  MPI_Datatype int8 = symbols["ompi_mpi_int8_t"];
  MPI_Datatype int16 = symbols["ompi_mpi_int16_t"];
  MPI_Datatype int32 = symbols["ompi_mpi_int32_t"];
  MPI_Datatype int64 = symbols["ompi_mpi_int64_t"];
  MPI_Datatype uint8 = symbols["ompi_mpi_uint8_t"];
  MPI_Datatype uint16 = symbols["ompi_mpi_uint16_t"];
  MPI_Datatype uint32 = symbols["ompi_mpi_uint32_t"];
  MPI_Datatype uint64 = symbols["ompi_mpi_uint64_t"];
  MPI_Datatype float32 = symbols["ompi_mpi_float"];
  MPI_Datatype float64 = symbols["ompi_mpi_double"];
  MPI_Datatype complex64 = symbols["ompi_mpi_c_float_complex"];
  MPI_Datatype complex128 = symbols["ompi_mpi_c_double_complex"];
  MPI_Op sum = symbols["ompi_mpi_op_sum"];
  MPI_Op prod = symbols["ompi_mpi_op_prod"];
  MPI_Op min = symbols["ompi_mpi_op_min"];
  MPI_Op max = symbols["ompi_mpi_op_max"];
  MPI_Op band = symbols["ompi_mpi_op_band"];
  MPI_Op bor = symbols["ompi_mpi_op_bor"];
  MPI_Op bxor = symbols["ompi_mpi_op_bxor"];
  MPI_Op land = symbols["ompi_mpi_op_land"];
  MPI_Op lor = symbols["ompi_mpi_op_lor"];

  // Open MPI's own answer to whether it takes memory of CUDA (MPIX_Query_cuda_support). From 5.0 on it is
  // known once MPI has been started, and no before.
  bool TakesCuda() const;
};

// A count of elements as MPI takes it: an int and a type, whatever the number.
//
// A value on the stack of the call that it serves, which must have ended before it goes. Used by the thread
// that makes that call.
class BigType {
 public:
  // `limit`: the largest count given to MPI as a number. Longer ones become one element of a
  // type that is made here.
  BigType(const Api& api, MPI_Datatype element, std::size_t width, std::uint64_t count, std::uint64_t limit);
  BigType(BigType&& other) noexcept;
  BigType& operator=(BigType&&) = delete;
  ~BigType();

  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  const Api& api_;
  int count_;
  MPI_Datatype type_;
  bool own_ = false;
};

struct Library {
  Api api;
  std::string path;     // of the file
  std::string version;  // first line of what it says of itself: "Open MPI v4.1.4, ..."
};

// `wanted`: a path or a name for the dynamic linker; nullopt: the library of the headers that this
// plugin was compiled with. Opened once and kept; a later call that wants another file throws.
const Library& OpenLibrary(const std::optional<std::string>& wanted);

// "Open MPI v4.1.4" of "Open MPI v4.1.4, package: ...".
std::string ShortVersion(const std::string& version);

// How MPI carries out a reduction of one element type.
struct Reduction {
  MPI_Datatype type;
  MPI_Op op;
  // 16-bit floats with partial results that would be rounded: to be carried as float32.
  bool widen = false;
};

// Reductions that MPI lacks, as operations of MPI: booleans, 16-bit floats, minima and maxima that keep NaN,
// and sums of small integers that wrap. Made once MPI runs, kept until the process ends; any thread.
class Combiners {
 public:
  explicit Combiners(const Api& api);

  // Whether MPI does it by itself: no function of ours, and nothing before or after it. Needs no MPI.
  static bool IsNative(std::int32_t dtype, std::int32_t reduce);
  // REQUIRES kernels::Supports(dtype, reduce). AVG and PREMUL_SUM are sums here.
  Reduction Find(std::int32_t dtype, std::int32_t reduce) const;
  // The type that moves elements of this width: 1, 2, 4, 8 or 16 bytes.
  MPI_Datatype Mover(std::size_t width) const;

 private:
  const Api& api_;
  std::array<std::array<std::optional<MPI_Op>, sdk::kReductionEnd>, sdk::kTypeEnd> own_;
};

}  // namespace dtrun::mpi_plugin
