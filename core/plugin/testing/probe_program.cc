// Replaces dtrun as the probe program.
#include "core/plugin/plugin.h"

int main(int argc, char** argv) {
  const int code = dtrun::plugin::ProbeMain(argc, argv);
  return code < 0 ? 64 : code;
}
