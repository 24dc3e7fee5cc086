// overlap_mpi BYTES ROUNDS: the same with MPI_Iallreduce, as a rank of mpirun; see overlap.h.
#include <mpi.h>

#include <cstdlib>
#include <vector>

#include "tools/bench/overlap.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: overlap_mpi BYTES ROUNDS, under mpirun\n", stderr);
    return 2;
  }
  MPI_Init(nullptr, nullptr);  // errors are fatal, and explained by MPI
  std::vector<float> send(std::strtoull(argv[1], nullptr, 10) / sizeof(float), 1), recv(send.size());
  MPI_Request request = MPI_REQUEST_NULL;
  dtrun::overlap::Transport transport;
  MPI_Comm_rank(MPI_COMM_WORLD, &transport.rank);
  transport.start = [&] {
    MPI_Iallreduce(send.data(), recv.data(), static_cast<int>(send.size()), MPI_FLOAT, MPI_SUM,
                   MPI_COMM_WORLD, &request);
  };
  transport.wait = [&] { MPI_Wait(&request, MPI_STATUS_IGNORE); };
  transport.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
  transport.slowest = [](double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
  };
  dtrun::overlap::Measure(transport, std::atoi(argv[2]));
  MPI_Finalize();
}
