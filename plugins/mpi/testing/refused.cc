// Gives the plugin a `library` that it must refuse, and prints what it says. Built twice: without
// MPI, and linked with the right one.
//
//   refused PLUGIN LIBRARY
#include <iostream>
#include <stdexcept>

#include "sdk/conformance/subject.h"

int main(int, char** arguments) {
  try {
    const dtrun::conformance::Subject subject(
        {.plugin = arguments[1], .options = {{"library", arguments[2]}}});
  } catch (const std::runtime_error& error) {
    std::cout << error.what() << std::endl;
    return 0;
  }
  std::cout << "'" << arguments[2] << "' was taken for an MPI" << std::endl;
  return 1;
}
