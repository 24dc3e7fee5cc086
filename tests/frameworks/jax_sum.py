"""An ordinary JAX script of many processes: nothing in it knows of dtrun. With the word "address" it says where they meet."""

import os
import sys

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

if "address" in sys.argv:
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    jax.distributed.initialize(address, int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]))
else:
    jax.distributed.initialize()
mesh = Mesh(jax.devices(), ("rank",))
mine = np.full(jax.local_device_count(), jax.process_index() + 1, np.float32)
data = jax.make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("rank")), mine)
total = jax.jit(lambda x: x.sum(), out_shardings=NamedSharding(mesh, PartitionSpec()))(data)
print(f"rank {jax.process_index()} of {jax.process_count()}: sum {total:g}", flush=True)
jax.distributed.shutdown()
