// dtrun-probe: loads one plugin for dtrun and answers requests about it, so that dtrun never
// does. A program of its own because it starts with every job, and starts faster without what
// dtrun needs besides.
#include <cstdio>

#include "core/plugin/plugin.h"

int main(int argc, char** argv) {
  if (const int code = dtrun::plugin::ProbeMain(argc, argv); code >= 0) return code;
  std::fputs("dtrun-probe is started by dtrun; see dtrun plugins --help\n", stderr);
  return 2;
}
