// dtrun: launches the processes of a training program.
#include <new>

#include "core/base/error.h"
#include "core/base/standard_output.h"

namespace dtrun::cli {
int Main(int argc, char** argv);  // verbs.cc
}

int main(int argc, char** argv) {
  dtrun::EndWhenExhausted(dtrun::kUserError);
  try {
    return dtrun::cli::Main(argc, argv);
  } catch (const std::bad_alloc& thrown) {
    dtrun::PrintMessage("dtrun: {}\n", dtrun::Exhausted(thrown));
    return dtrun::kUserError;
  }
}
