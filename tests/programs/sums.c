// Sums 257 of each of three ranks, as floats and as doubles.
#include <stdio.h>

#include "dtrun/dtrun.h"
int main(void) {
  float single = 257;
  double wide = 257;
  dtrun_comm* world = NULL;
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  if (dtrun_init(&error) != DTRUN_OK || (world = dtrun_world()) == NULL ||
      dtrun_allreduce(world, &single, &single, 1, DTRUN_FLOAT32, DTRUN_SUM, NULL, &error) != DTRUN_OK ||
      dtrun_allreduce(world, &wide, &wide, 1, DTRUN_FLOAT64, DTRUN_SUM, NULL, &error) != DTRUN_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  printf("%s: floats %g, doubles %g\n", dtrun_comm_backend(world), single, wide);
  dtrun_finalize();
  return 0;
}
