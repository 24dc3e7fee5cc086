/* Where a compiler puts the members of the structures that _library.py declares: NAME OFFSET, and NAME SIZE.
 */
#include <stddef.h>
#include <stdio.h>

#include "dtrun/device.h"

#define MEMBER(type, member) printf(#type "." #member " %zu\n", offsetof(type, member))
#define SIZE(type) printf(#type " %zu\n", sizeof(type))

int main(void) {
  SIZE(dtrun_error);
  MEMBER(dtrun_error, code);
  MEMBER(dtrun_error, peer);
  MEMBER(dtrun_error, message);
  SIZE(dtrun_stream);
  MEMBER(dtrun_stream, device_index);
  MEMBER(dtrun_stream, native);
  SIZE(dtrun_extension);
  MEMBER(dtrun_extension, table);
  MEMBER(dtrun_extension, comm);
  SIZE(dtrun_op);
  MEMBER(dtrun_op, kind);
  MEMBER(dtrun_op, count);
  MEMBER(dtrun_op, send);
  MEMBER(dtrun_op, timeout_ns);
  MEMBER(dtrun_op, send_counts);
  MEMBER(dtrun_op, recv_offsets);
  MEMBER(dtrun_op, scale);
  MEMBER(dtrun_op, source);
  return 0;
}
