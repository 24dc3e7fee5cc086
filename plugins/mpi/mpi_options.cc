#include "mpi_options.h"

namespace dtrun::mpi_plugin {
namespace {

constexpr const char* kCollSmChoices[] = {"auto", "on", "off"};
constexpr const char* kBlockingChoices[] = {"caller", "thread"};

constexpr dtrun_option MakeLibrary() {
  dtrun_option option = sdk::Option("library", DTRUN_TYPE_STRING, nullptr,
                                    "path of libmpi, or a name for the dynamic linker", DTRUN_SCOPE_HOST);
  option.long_doc = "Unset: " MPI_SONAME
                    ", which belongs to the headers that this plugin was built with. An MPI that the "
                    "program has loaded already is used as it is.";
  return option;
}

constexpr dtrun_option MakeCollSm() {
  dtrun_option option = sdk::Option("coll_sm", DTRUN_TYPE_ENUM, "auto",
                                    "Open MPI's shared-memory collectives", DTRUN_SCOPE_JOB);
  option.long_doc =
      "Open MPI ships them with priority 0, that is switched off.\n"
      "auto: for allreduce, reduce and broadcast of 32 MiB and more, when all ranks share a host and each "
      "has "
      "a processor. on: at every size, wherever Open MPI can use them. off: as installed.\n"
      "A value of OMPI_MCA_coll_sm_priority in the environment wins. Nothing can be changed when the program "
      "has called MPI_Init itself.";
  option.choices = kCollSmChoices;
  option.choice_count = std::size(kCollSmChoices);
  option.env_alias = "OMPI_MCA_coll_sm_priority";
  return option;
}

constexpr dtrun_option MakeBlocking() {
  dtrun_option option =
      sdk::Option("blocking", DTRUN_TYPE_ENUM, "caller",
                  "who makes the MPI call when the caller waits at once", DTRUN_SCOPE_PROCESS);
  option.long_doc =
      "caller: the waiting thread, after all ranks have come; this costs no switch of threads. If a rank "
      "dies "
      "in the middle of the MPI call, the thread stays in it.\n"
      "thread: always a thread of the communicator, so that every wait ends at its deadline whatever MPI "
      "does.\n"
      "Ranks on several hosts always use the thread.";
  option.choices = kBlockingChoices;
  option.choice_count = std::size(kBlockingChoices);
  return option;
}

constexpr dtrun_option MakeChunk() {
  dtrun_option option = sdk::Option("chunk", DTRUN_TYPE_UINT, "1073741824",
                                    "largest count that is given to one MPI call", DTRUN_SCOPE_JOB);
  option.long_doc = "MPI counts are of type int; longer operations are cut. Lower it only to test that.";
  option.unit = "elements";
  option.min_text = "1";
  option.max_text = "1073741824";
  return option;
}

constexpr dtrun_option kTable[] = {MakeLibrary(), MakeCollSm(), MakeBlocking(), MakeChunk()};

}  // namespace

const dtrun_option* OptionTable() { return kTable; }
std::uint64_t OptionCount() { return std::size(kTable); }

}  // namespace dtrun::mpi_plugin
