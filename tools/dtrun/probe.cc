// dtrun-probe: loads one plugin and answers dtrun's requests about it, so that dtrun never loads plugins. A
// separate program, because it runs for every job and starts faster without dtrun's other dependencies.
#include <cstdio>

#include "core/plugin/plugin.h"

int main(int argc, char** argv) {
  if (const int code = dtrun::plugin::ProbeMain(argc, argv); code >= 0) return code;
  std::fputs("dtrun-probe is started by dtrun; see dtrun plugins --help\n", stderr);
  return 2;
}
