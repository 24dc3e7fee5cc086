// A rank that uses a device through dtrun.h alone, and what can go wrong with one.
//
//   device_program operations     every operation, type and reduction; what is refused is listed
//   device_program streams        several streams, handles, many operations on their way
//   device_program refusals       host memory with a stream, a device that is not there
//   device_program capture        an operation in a graph, captured in each mode
//   device_program large          operations near a staging piece in size, and far above it; every element
//   device_program order          operations between delays on the device
//   device_program beside         calls of CUDA's that wait for the device, while a sum is on its way
//   device_program rate           allreduce beside the rate of copies between host and device; JSON
//   device_program abort          rank 0 leaves an operation out, the others abort it
//   device_program deadline       the same, and the operation's own time ends it
//   device_program mismatch       the last rank's third call has another count
//   device_program hang           the last rank leaves out its third call and stands still
//
// A number behind it is the device's index, 0 by default; one more, for `rate`, its largest MiB. The exit
// code is 77 where it cannot be tried.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    int (*run)(Device*);
  } kParts[] = {{"operations", all_operations},
                {"streams", streams},
                {"refusals", refusals},
                {"capture", capture},
                {"large", large},
                {"order", order},
                {"beside", beside},
                {"rate", rate},
                {"abort", abort_one},
                {"deadline", deadline},
                {"hang", hang},
                {"mismatch", mismatch}};
  const char* const what = argc > 1 ? argv[1] : "operations";
  for (size_t i = 0; i < sizeof kParts / sizeof *kParts; ++i) {
    if (strcmp(kParts[i].name, what) != 0) continue;
    Device device = open_device(argc > 2 ? atoi(argv[2]) : 0);
    if (argc > 3) device.largest_mib = atoi(argv[3]);
    const int code = kParts[i].run(&device);
    close_device(&device);
    return code;
  }
  fprintf(stderr, "device_program: there is no '%s'; the head of main.c has what there is\n", what);
  return 2;
}
