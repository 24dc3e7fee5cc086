// The functions and handles of an MPI library that was opened at run time.
//
// Nothing here is linked: the types come from mpi.h, the addresses from the library. Filled
// by library.h once per process, constant afterwards; any thread.
#pragma once

#define OMPI_SKIP_MPICXX 1  // the C++ bindings would be linked
#include <mpi.h>

#include <string>

#include "dtrun/plugin.hpp"

namespace dtrun::mpi_plugin {

struct Api {
  decltype(&::MPI_Get_library_version) get_library_version;
  decltype(&::MPI_Initialized) initialized;
  decltype(&::MPI_Finalized) finalized;
  decltype(&::MPI_Init_thread) init_thread;
  decltype(&::MPI_Query_thread) query_thread;
  decltype(&::MPI_Finalize) finalize;
  decltype(&::MPI_Error_string) error_string;

  decltype(&::MPI_Comm_rank) comm_rank;
  decltype(&::MPI_Comm_size) comm_size;
  decltype(&::MPI_Comm_group) comm_group;
  decltype(&::MPI_Comm_create_group) comm_create_group;
  decltype(&::MPI_Comm_dup) comm_dup;
  decltype(&::MPI_Comm_dup_with_info) comm_dup_with_info;
  decltype(&::MPI_Info_create) info_create;
  decltype(&::MPI_Info_set) info_set;
  decltype(&::MPI_Info_free) info_free;
  decltype(&::MPI_Comm_free) comm_free;
  decltype(&::MPI_Comm_set_errhandler) comm_set_errhandler;
  decltype(&::MPI_Comm_get_attr) comm_get_attr;
  decltype(&::MPI_Group_incl) group_incl;
  decltype(&::MPI_Group_free) group_free;

  decltype(&::MPI_Allreduce) allreduce;
  decltype(&::MPI_Reduce) reduce;
  decltype(&::MPI_Reduce_scatter) reduce_scatter;
  decltype(&::MPI_Reduce_scatter_block) reduce_scatter_block;
  decltype(&::MPI_Bcast) bcast;
  decltype(&::MPI_Allgather) allgather;
  decltype(&::MPI_Allgatherv) allgatherv;
  decltype(&::MPI_Alltoall) alltoall;
  decltype(&::MPI_Gather) gather;
  decltype(&::MPI_Scatter) scatter;
  decltype(&::MPI_Barrier) barrier;

  decltype(&::MPI_Isend) isend;
  decltype(&::MPI_Irecv) irecv;
  decltype(&::MPI_Test) test;
  decltype(&::MPI_Waitall) waitall;
  decltype(&::MPI_Cancel) cancel;
  decltype(&::MPI_Request_free) request_free;
  decltype(&::MPI_Get_count) get_count;

  decltype(&::MPI_Type_contiguous) type_contiguous;
  decltype(&::MPI_Type_create_struct) type_create_struct;
  decltype(&::MPI_Type_commit) type_commit;
  decltype(&::MPI_Type_free) type_free;
  decltype(&::MPI_Op_create) op_create;

  MPI_Comm comm_world;
  MPI_Comm comm_null;
  MPI_Errhandler errors_return;
  MPI_Request request_null;

  MPI_Datatype int8, int16, int32, int64, uint8, uint16, uint32, uint64;
  MPI_Datatype float32, float64, complex64, complex128;
  MPI_Op sum, prod, min, max, band, bor, bxor, land, lor;

  // Throws when `code` is no success; `call` names the function.
  void Check(int code, const char* call) const;
};

}  // namespace dtrun::mpi_plugin
