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

// The functions and handles of a libmpi. Constant; any thread.
struct Api {
  explicit Api(Symbols from) : symbols(std::move(from)) {}

  const Symbols symbols;
  decltype(&::MPI_Initialized) initialized = symbols["MPI_Initialized"];
  decltype(&::MPI_Finalized) finalized = symbols["MPI_Finalized"];
  decltype(&::MPI_Init_thread) init_thread = symbols["MPI_Init_thread"];
  decltype(&::MPI_Query_thread) query_thread = symbols["MPI_Query_thread"];
  decltype(&::MPI_Finalize) finalize = symbols["MPI_Finalize"];
  decltype(&::MPI_Error_string) error_string = symbols["MPI_Error_string"];

  decltype(&::MPI_Comm_rank) comm_rank = symbols["MPI_Comm_rank"];
  decltype(&::MPI_Comm_size) comm_size = symbols["MPI_Comm_size"];
  decltype(&::MPI_Comm_group) comm_group = symbols["MPI_Comm_group"];
  decltype(&::MPI_Comm_create_group) comm_create_group = symbols["MPI_Comm_create_group"];
  decltype(&::MPI_Comm_dup) comm_dup = symbols["MPI_Comm_dup"];
  decltype(&::MPI_Comm_dup_with_info) comm_dup_with_info = symbols["MPI_Comm_dup_with_info"];
  decltype(&::MPI_Info_create) info_create = symbols["MPI_Info_create"];
  decltype(&::MPI_Info_set) info_set = symbols["MPI_Info_set"];
  decltype(&::MPI_Info_free) info_free = symbols["MPI_Info_free"];
  decltype(&::MPI_Comm_free) comm_free = symbols["MPI_Comm_free"];
  decltype(&::MPI_Comm_set_errhandler) comm_set_errhandler = symbols["MPI_Comm_set_errhandler"];
  decltype(&::MPI_Comm_get_attr) comm_get_attr = symbols["MPI_Comm_get_attr"];
  decltype(&::MPI_Group_incl) group_incl = symbols["MPI_Group_incl"];
  decltype(&::MPI_Group_free) group_free = symbols["MPI_Group_free"];

  decltype(&::MPI_Allreduce) allreduce = symbols["MPI_Allreduce"];
  decltype(&::MPI_Reduce) reduce = symbols["MPI_Reduce"];
  decltype(&::MPI_Reduce_scatter) reduce_scatter = symbols["MPI_Reduce_scatter"];
  decltype(&::MPI_Bcast) bcast = symbols["MPI_Bcast"];
  decltype(&::MPI_Allgather) allgather = symbols["MPI_Allgather"];
  decltype(&::MPI_Allgatherv) allgatherv = symbols["MPI_Allgatherv"];
  decltype(&::MPI_Alltoall) alltoall = symbols["MPI_Alltoall"];
  decltype(&::MPI_Gather) gather = symbols["MPI_Gather"];
  decltype(&::MPI_Scatter) scatter = symbols["MPI_Scatter"];
  decltype(&::MPI_Barrier) barrier = symbols["MPI_Barrier"];

  decltype(&::MPI_Isend) isend = symbols["MPI_Isend"];
  decltype(&::MPI_Irecv) irecv = symbols["MPI_Irecv"];
  decltype(&::MPI_Test) test = symbols["MPI_Test"];
  decltype(&::MPI_Waitall) waitall = symbols["MPI_Waitall"];
  decltype(&::MPI_Cancel) cancel = symbols["MPI_Cancel"];
  decltype(&::MPI_Get_count) get_count = symbols["MPI_Get_count"];

  decltype(&::MPI_Type_contiguous) type_contiguous = symbols["MPI_Type_contiguous"];
  decltype(&::MPI_Type_create_struct) type_create_struct = symbols["MPI_Type_create_struct"];
  decltype(&::MPI_Type_commit) type_commit = symbols["MPI_Type_commit"];
  decltype(&::MPI_Type_free) type_free = symbols["MPI_Type_free"];
  decltype(&::MPI_Op_create) op_create = symbols["MPI_Op_create"];

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

  // Throws when `code` is no success; `call` names the function.
  void Check(int code, const char* call) const;
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
