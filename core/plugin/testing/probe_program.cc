// Stands in for dtrun as the program that serves as probe.
#include "core/plugin/plugin.h"

int main(int argc, char** argv) {
  const int code = dtrun::plugin::ProbeMain(argc, argv);
  return code < 0 ? 64 : code;
}
