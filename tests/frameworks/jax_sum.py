"""An ordinary JAX script of many processes: nothing in it knows of dtrun."""

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

jax.distributed.initialize()
mesh = Mesh(jax.devices(), ("rank",))
mine = np.full(jax.local_device_count(), jax.process_index() + 1, np.float32)
data = jax.make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("rank")), mine)
total = jax.jit(lambda x: x.sum(), out_shardings=NamedSharding(mesh, PartitionSpec()))(data)
print(f"rank {jax.process_index()} of {jax.process_count()}: sum {total:g}", flush=True)
jax.distributed.shutdown()
