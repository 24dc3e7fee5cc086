"""An ordinary mpi4py script: nothing in it knows of dtrun."""

from mpi4py import MPI

world = MPI.COMM_WORLD
print(f"rank {world.rank} of {world.size}: sum {world.allreduce(world.rank + 1)}", flush=True)
