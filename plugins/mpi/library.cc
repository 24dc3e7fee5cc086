#include "library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>

#include "dtrun/kernels.hpp"

namespace dtrun::mpi_plugin {
namespace {

using sdk::Failure;
using sdk::FileOf;

// MPI_SONAME is the library that mpi.h belongs to.
constexpr const char* kSoname = MPI_SONAME;
constexpr const char* kBuiltFor = "Open MPI";

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

// MPI_Get_library_version may be called before MPI_Init.
std::string VersionOf(decltype(&::MPI_Get_library_version) get_library_version) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
  int length = 0;
  if (get_library_version(text, &length) != MPI_SUCCESS) return "";
  const std::string version(text);
  return version.substr(0, version.find('\n'));
}

Library Load(const std::string& name) {
  // An MPI that the program itself was linked with is the only one there can be.
  void* const linked = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
  void* const image = Open(name);
  void* const found = dlsym(image, "MPI_Get_library_version");
  if (found == nullptr) Refuse("'" + name + "' is no MPI library: it has no 'MPI_Get_library_version'");
  const std::string path = RealPath(FileOf(found));
  if (linked != nullptr && linked != found && RealPath(FileOf(linked)) != path) {
    throw Failure(DTRUN_FAILED_PRECONDITION, "this program already uses '" + RealPath(FileOf(linked)) +
                                                 "', and a process cannot have '" + path +
                                                 "' too; link the program with the same MPI, or choose it "
                                                 "with the option 'library'");
  }
  const std::string version = VersionOf(sdk::Symbol(found));
  if (version.rfind(kBuiltFor, 0) != 0) Refuse("'" + path + "' is '" + version + "', not " + kBuiltFor);
  return {Api(Symbols(image, linked != nullptr, path)), path, version};
}

using Combining = void (*)(void*, void*, int*, MPI_Datatype*);

// MPI gives a user's function no context, so there is one for each pair.
template <std::int32_t Dtype, std::int32_t Reduce>
void Combine(void* in, void* inout, int* count, MPI_Datatype*) {
  static const kernels::Reduce reduce = kernels::ReduceFor(Dtype, Reduce);
  const void* const sources[] = {in, inout};
  reduce(inout, sources, 2, static_cast<std::size_t>(*count));
}

struct Entry {
  std::int32_t dtype;
  std::int32_t reduce;
  Combining function;
};

template <std::int32_t Dtype, std::int32_t Reduce>
constexpr Entry Make() {
  return {Dtype, Reduce, &Combine<Dtype, Reduce>};
}

// Open MPI 4.1's op/avx component adds integers of 8 and 16 bits with saturation.
constexpr Entry kEntries[] = {
    Make<DTRUN_INT8, DTRUN_SUM>(),    Make<DTRUN_UINT8, DTRUN_SUM>(),    Make<DTRUN_INT16, DTRUN_SUM>(),
    Make<DTRUN_UINT16, DTRUN_SUM>(),  Make<DTRUN_INT8, DTRUN_PROD>(),    Make<DTRUN_UINT8, DTRUN_PROD>(),
    Make<DTRUN_INT16, DTRUN_PROD>(),  Make<DTRUN_UINT16, DTRUN_PROD>(),  Make<DTRUN_FLOAT16, DTRUN_MIN>(),
    Make<DTRUN_FLOAT16, DTRUN_MAX>(), Make<DTRUN_BFLOAT16, DTRUN_MIN>(), Make<DTRUN_BFLOAT16, DTRUN_MAX>(),
    Make<DTRUN_FLOAT32, DTRUN_MIN>(), Make<DTRUN_FLOAT32, DTRUN_MAX>(),  Make<DTRUN_FLOAT64, DTRUN_MIN>(),
    Make<DTRUN_FLOAT64, DTRUN_MAX>(), Make<DTRUN_BOOL, DTRUN_SUM>(),     Make<DTRUN_BOOL, DTRUN_PROD>(),
    Make<DTRUN_BOOL, DTRUN_MIN>(),    Make<DTRUN_BOOL, DTRUN_MAX>(),     Make<DTRUN_BOOL, DTRUN_BAND>(),
    Make<DTRUN_BOOL, DTRUN_BOR>(),    Make<DTRUN_BOOL, DTRUN_BXOR>(),    Make<DTRUN_BOOL, DTRUN_LAND>(),
    Make<DTRUN_BOOL, DTRUN_LOR>(),
};

bool IsHalf(std::int32_t dtype) { return dtype == DTRUN_FLOAT16 || dtype == DTRUN_BFLOAT16; }

MPI_Datatype TypeFor(const Api& api, std::int32_t dtype) {
  switch (dtype) {
    case DTRUN_FLOAT32: return api.float32;
    case DTRUN_FLOAT64: return api.float64;
    case DTRUN_INT8: return api.int8;
    case DTRUN_INT16: return api.int16;
    case DTRUN_INT32: return api.int32;
    case DTRUN_INT64: return api.int64;
    case DTRUN_UINT32: return api.uint32;
    case DTRUN_UINT64: return api.uint64;
    case DTRUN_COMPLEX64: return api.complex64;
    case DTRUN_COMPLEX128: return api.complex128;
    case DTRUN_FLOAT16:
    case DTRUN_BFLOAT16:
    case DTRUN_UINT16: return api.uint16;
    default: return api.uint8;
  }
}

}  // namespace

// The linker may have moved an object of the library, such as ompi_mpi_comm_world, into the
// program (a copy relocation); the library then uses that one, and so must we.
sdk::Symbol Symbols::Find(const char* name) const {
  void* address = linked_ ? dlsym(RTLD_DEFAULT, name) : nullptr;
  if (address == nullptr) address = dlsym(image_, name);
  return sdk::Symbol(address);
}

sdk::Symbol Symbols::operator[](const char* name) const {
  const sdk::Symbol symbol = Find(name);
  if (!symbol.present()) Refuse("'" + path_ + "' has no '" + name + "'");
  return symbol;
}

bool Api::TakesCuda() const {
  const sdk::Symbol query = symbols.Find("MPIX_Query_cuda_support");
  if (!query.present()) return false;
  int (*const ask)() = query;
  return ask() == 1;
}

void Fail(const char* call, int code, decltype(&::MPI_Error_string) error_string) {
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

BigType::BigType(const Api& api, MPI_Datatype element, std::size_t width, std::uint64_t count,
                 std::uint64_t limit)
    : api_(api), count_(static_cast<int>(count <= limit ? count : 1)), type_(element) {
  if (count <= limit) return;
  // Whole chunks, and the rest behind them.
  MPI_Datatype chunk;
  api.MPI_Type_contiguous(static_cast<int>(limit), element, &chunk);
  const int lengths[] = {static_cast<int>(count / limit), static_cast<int>(count % limit)};
  const MPI_Aint places[] = {0, static_cast<MPI_Aint>((count - count % limit) * width)};
  const MPI_Datatype types[] = {chunk, element};
  api.MPI_Type_create_struct(2, lengths, places, types, &type_);
  own_ = true;
  api.MPI_Type_commit(&type_);
  api.MPI_Type_free(&chunk);
}

BigType::BigType(BigType&& other) noexcept
    : api_(other.api_), count_(other.count_), type_(other.type_), own_(std::exchange(other.own_, false)) {}

BigType::~BigType() {
  if (own_) api_.MPI_Type_free.Try(&type_);
}

Combiners::Combiners(const Api& api) : api_(api) {
  for (const Entry& entry : kEntries) {
    MPI_Op op;
    api.MPI_Op_create(entry.function, 1, &op);
    own_[static_cast<std::size_t>(entry.dtype)][static_cast<std::size_t>(entry.reduce)] = op;
  }
}

bool Combiners::IsNative(std::int32_t dtype, std::int32_t reduce) {
  if (IsHalf(dtype) || reduce == DTRUN_AVG || reduce == DTRUN_PREMUL_SUM) return false;
  return std::none_of(std::begin(kEntries), std::end(kEntries),
                      [&](const Entry& entry) { return entry.dtype == dtype && entry.reduce == reduce; });
}

Reduction Combiners::Find(std::int32_t dtype, std::int32_t reduce) const {
  const bool half = IsHalf(dtype);
  const bool compares = reduce == DTRUN_MIN || reduce == DTRUN_MAX;
  if (half && !compares) return {api_.float32, reduce == DTRUN_PROD ? api_.prod : api_.sum, true};
  const MPI_Datatype type = TypeFor(api_, dtype);
  if (const auto& own = own_[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(reduce)])
    return {type, *own};
  switch (reduce) {
    case DTRUN_PROD: return {type, api_.prod};
    case DTRUN_MIN: return {type, api_.min};
    case DTRUN_MAX: return {type, api_.max};
    case DTRUN_BAND: return {type, api_.band};
    case DTRUN_BOR: return {type, api_.bor};
    case DTRUN_BXOR: return {type, api_.bxor};
    case DTRUN_LAND: return {type, api_.land};
    case DTRUN_LOR: return {type, api_.lor};
    default: return {type, api_.sum};
  }
}

MPI_Datatype Combiners::Mover(std::size_t width) const {
  switch (width) {
    case 1: return api_.uint8;
    case 2: return api_.uint16;
    case 4: return api_.uint32;
    case 8: return api_.uint64;
    default: return api_.complex128;
  }
}

}  // namespace dtrun::mpi_plugin
