#include "library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <mutex>

namespace dtrun::mpi_plugin {
namespace {

using sdk::Failure;

// MPI_SONAME is the library that mpi.h belongs to.
constexpr const char* kSoname = MPI_SONAME;
constexpr const char* kBuiltFor = "Open MPI";

std::string FileOf(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "unknown";
}

std::string RealPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  return real == nullptr ? path : real.get();
}

[[noreturn]] void Refuse(const std::string& what) {
  throw Failure(DTRUN_FAILED_PRECONDITION,
                what + "; this plugin was built for " + kBuiltFor + " (" + kSoname +
                    "): install it (Debian: libopenmpi3), or set the option 'library' to its libmpi");
}

// Open MPI's components name libmpi as a dependency since 3.0, so it need not be global.
void* Open(const std::string& name) {
  if (void* const present = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return present;
  if (void* const image = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return image;
  const char* const text = dlerror();
  const std::string local = text == nullptr ? "unknown error" : text;
  if (void* const image = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL)) return image;
  Refuse("cannot open '" + name + "': " + local);
}

class Symbols {
 public:
  // `linked`: the program itself was linked with the library.
  Symbols(void* image, bool linked, const std::string& path) : image_(image), linked_(linked), path_(path) {}

  template <class Function>
  void Find(Function& out, const char* name) const {
    out = reinterpret_cast<Function>(Address(name));
  }

 private:
  // The linker may have moved an object of the library, such as ompi_mpi_comm_world, into the
  // program (a copy relocation); the library then uses that one, and so must we.
  void* Address(const char* name) const {
    void* address = linked_ ? dlsym(RTLD_DEFAULT, name) : nullptr;
    if (address == nullptr) address = dlsym(image_, name);
    if (address == nullptr) Refuse("'" + path_ + "' has no '" + name + "'");
    return address;
  }

  void* image_;
  bool linked_;
  const std::string& path_;
};

void FindFunctions(const Symbols& symbols, Api& api) {
  symbols.Find(api.initialized, "MPI_Initialized");
  symbols.Find(api.finalized, "MPI_Finalized");
  symbols.Find(api.init_thread, "MPI_Init_thread");
  symbols.Find(api.query_thread, "MPI_Query_thread");
  symbols.Find(api.finalize, "MPI_Finalize");
  symbols.Find(api.error_string, "MPI_Error_string");
  symbols.Find(api.comm_rank, "MPI_Comm_rank");
  symbols.Find(api.comm_size, "MPI_Comm_size");
  symbols.Find(api.comm_group, "MPI_Comm_group");
  symbols.Find(api.comm_create_group, "MPI_Comm_create_group");
  symbols.Find(api.comm_dup, "MPI_Comm_dup");
  symbols.Find(api.comm_dup_with_info, "MPI_Comm_dup_with_info");
  symbols.Find(api.info_create, "MPI_Info_create");
  symbols.Find(api.info_set, "MPI_Info_set");
  symbols.Find(api.info_free, "MPI_Info_free");
  symbols.Find(api.comm_free, "MPI_Comm_free");
  symbols.Find(api.comm_set_errhandler, "MPI_Comm_set_errhandler");
  symbols.Find(api.comm_get_attr, "MPI_Comm_get_attr");
  symbols.Find(api.group_incl, "MPI_Group_incl");
  symbols.Find(api.group_free, "MPI_Group_free");
  symbols.Find(api.allreduce, "MPI_Allreduce");
  symbols.Find(api.reduce, "MPI_Reduce");
  symbols.Find(api.reduce_scatter, "MPI_Reduce_scatter");
  symbols.Find(api.reduce_scatter_block, "MPI_Reduce_scatter_block");
  symbols.Find(api.bcast, "MPI_Bcast");
  symbols.Find(api.allgather, "MPI_Allgather");
  symbols.Find(api.allgatherv, "MPI_Allgatherv");
  symbols.Find(api.alltoall, "MPI_Alltoall");
  symbols.Find(api.gather, "MPI_Gather");
  symbols.Find(api.scatter, "MPI_Scatter");
  symbols.Find(api.barrier, "MPI_Barrier");
  symbols.Find(api.isend, "MPI_Isend");
  symbols.Find(api.irecv, "MPI_Irecv");
  symbols.Find(api.test, "MPI_Test");
  symbols.Find(api.waitall, "MPI_Waitall");
  symbols.Find(api.cancel, "MPI_Cancel");
  symbols.Find(api.request_free, "MPI_Request_free");
  symbols.Find(api.get_count, "MPI_Get_count");
  symbols.Find(api.type_contiguous, "MPI_Type_contiguous");
  symbols.Find(api.type_create_struct, "MPI_Type_create_struct");
  symbols.Find(api.type_commit, "MPI_Type_commit");
  symbols.Find(api.type_free, "MPI_Type_free");
  symbols.Find(api.op_create, "MPI_Op_create");
}

// In Open MPI's mpi.h a predefined handle is the address of an object of the library.
void FindHandles(const Symbols& symbols, Api& api) {
  symbols.Find(api.comm_world, "ompi_mpi_comm_world");
  symbols.Find(api.comm_null, "ompi_mpi_comm_null");
  symbols.Find(api.errors_return, "ompi_mpi_errors_return");
  symbols.Find(api.request_null, "ompi_request_null");
  symbols.Find(api.int8, "ompi_mpi_int8_t");
  symbols.Find(api.int16, "ompi_mpi_int16_t");
  symbols.Find(api.int32, "ompi_mpi_int32_t");
  symbols.Find(api.int64, "ompi_mpi_int64_t");
  symbols.Find(api.uint8, "ompi_mpi_uint8_t");
  symbols.Find(api.uint16, "ompi_mpi_uint16_t");
  symbols.Find(api.uint32, "ompi_mpi_uint32_t");
  symbols.Find(api.uint64, "ompi_mpi_uint64_t");
  symbols.Find(api.float32, "ompi_mpi_float");
  symbols.Find(api.float64, "ompi_mpi_double");
  symbols.Find(api.complex64, "ompi_mpi_c_float_complex");
  symbols.Find(api.complex128, "ompi_mpi_c_double_complex");
  symbols.Find(api.sum, "ompi_mpi_op_sum");
  symbols.Find(api.prod, "ompi_mpi_op_prod");
  symbols.Find(api.min, "ompi_mpi_op_min");
  symbols.Find(api.max, "ompi_mpi_op_max");
  symbols.Find(api.band, "ompi_mpi_op_band");
  symbols.Find(api.bor, "ompi_mpi_op_bor");
  symbols.Find(api.bxor, "ompi_mpi_op_bxor");
  symbols.Find(api.land, "ompi_mpi_op_land");
  symbols.Find(api.lor, "ompi_mpi_op_lor");
}

// MPI_Get_library_version may be called before MPI_Init.
std::string VersionOf(const Api& api) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
  int length = 0;
  if (api.get_library_version(text, &length) != MPI_SUCCESS) return "";
  const std::string version(text);
  return version.substr(0, version.find('\n'));
}

Library Load(const std::string& name) {
  Library library;
  // An MPI that the program itself was linked with is the only one there can be.
  void* const linked = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
  void* const image = Open(name);
  void* const version = dlsym(image, "MPI_Get_library_version");
  if (version == nullptr) Refuse("'" + name + "' is no MPI library: it has no 'MPI_Get_library_version'");
  library.path = RealPath(FileOf(version));
  if (linked != nullptr && linked != version && RealPath(FileOf(linked)) != library.path) {
    throw Failure(DTRUN_FAILED_PRECONDITION, "this program already uses '" + RealPath(FileOf(linked)) +
                                                 "', and a process cannot have '" + library.path +
                                                 "' too; link the program with the same MPI, or choose it "
                                                 "with the option 'library'");
  }
  library.api.get_library_version = reinterpret_cast<decltype(Api::get_library_version)>(version);
  library.version = VersionOf(library.api);
  if (library.version.rfind(kBuiltFor, 0) != 0)
    Refuse("'" + library.path + "' is '" + library.version + "', not " + kBuiltFor);
  const Symbols symbols(image, linked != nullptr, library.path);
  FindFunctions(symbols, library.api);
  FindHandles(symbols, library.api);
  return library;
}

}  // namespace

void Api::Check(int code, const char* call) const {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  if (error_string(code, text, &length) != MPI_SUCCESS) text[0] = '\0';
  throw Failure(DTRUN_VENDOR, std::string(call) + ": " + (text[0] == '\0' ? "unknown error" : text))
      .Vendor("mpi", code);
}

const Library& OpenLibrary(const std::optional<std::string>& wanted) {
  static std::mutex mutex;
  static const Library* opened = nullptr;  // lives as long as the process
  const std::string name = wanted.value_or(kSoname);
  const std::lock_guard lock(mutex);
  if (opened == nullptr) {
    opened = new Library(Load(name));
    return *opened;
  }
  if (wanted && RealPath(*wanted) != opened->path) {
    // The name may still be another way to the same file.
    const Library other = Load(name);
    if (other.path != opened->path) {
      throw Failure(DTRUN_FAILED_PRECONDITION, "this process already uses '" + opened->path +
                                                   "' and cannot have '" + other.path +
                                                   "' too; give the same 'library' everywhere");
    }
  }
  return *opened;
}

std::string ShortVersion(const std::string& version) { return version.substr(0, version.find(',')); }

}  // namespace dtrun::mpi_plugin
