#include "library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

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

BigType::BigType(const Api& api, MPI_Datatype element, std::size_t width, std::uint64_t count,
                 std::uint64_t limit)
    : api_(api), count_(static_cast<int>(count <= limit ? count : 1)), type_(element) {
  if (count <= limit) return;
  // Whole chunks, and the rest behind them.
  MPI_Datatype chunk;
  api.Check(api.type_contiguous(static_cast<int>(limit), element, &chunk), "MPI_Type_contiguous");
  const int lengths[] = {static_cast<int>(count / limit), static_cast<int>(count % limit)};
  const MPI_Aint places[] = {0, static_cast<MPI_Aint>((count - count % limit) * width)};
  const MPI_Datatype types[] = {chunk, element};
  api.Check(api.type_create_struct(2, lengths, places, types, &type_), "MPI_Type_create_struct");
  own_ = true;
  api.Check(api.type_commit(&type_), "MPI_Type_commit");
  api.Check(api.type_free(&chunk), "MPI_Type_free");
}

BigType::BigType(BigType&& other) noexcept
    : api_(other.api_), count_(other.count_), type_(other.type_), own_(std::exchange(other.own_, false)) {}

BigType::~BigType() {
  if (own_) api_.type_free(&type_);
}

}  // namespace dtrun::mpi_plugin
