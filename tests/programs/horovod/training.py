"""DistributedOptimizer on the rows of each rank equals one process on all rows; the same for SyncBatchNorm."""

import torch

import dtrun.horovod.torch as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
torch.manual_seed(7)
ROWS = 12
INPUTS, TARGETS = torch.randn(6, ROWS, 5, dtype=torch.float64), torch.randn(6, ROWS, 1, dtype=torch.float64)
PER_RANK = ROWS // size
MINE = slice(rank * PER_RANK, (rank + 1) * PER_RANK)


def network(norm=None):
    torch.manual_seed(3)
    layers = [torch.nn.Linear(5, 4), norm(4) if norm else torch.nn.Identity(), torch.nn.Tanh(), torch.nn.Linear(4, 1)]
    return torch.nn.Sequential(*layers).double()


def optimizer_of(net, kind="sgd"):
    kinds = {"sgd": torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), "adam": torch.optim.Adam(net.parameters(), lr=0.01)}
    return kinds[kind]


def train(net, optimizer, rows, passes=1):
    for step in range(0, 6, passes):
        optimizer.zero_grad()
        for one in range(step, step + passes):
            torch.nn.functional.mse_loss(net(INPUTS[one, rows]), TARGETS[one, rows]).backward()
        optimizer.step()
    return torch.cat([value.flatten() for value in net.state_dict().values()])


def close(result, expected, tolerance=1e-12):
    assert torch.allclose(result, expected, rtol=0, atol=tolerance), (result - expected).abs().max()


def compare(tolerance=1e-12, kind="sgd", norm=None, reference=None, passes=1, **options):
    alone, net = network(reference), network(norm)
    expected = train(alone, optimizer_of(alone, kind), slice(0, ROWS), passes)
    if callable(options.get("groups")):
        options["groups"] = options["groups"](net)
    wrapped = hvd.DistributedOptimizer(
        optimizer_of(net, kind), named_parameters=net.named_parameters(), backward_passes_per_step=passes, **options
    )
    assert isinstance(wrapped, torch.optim.SGD if kind == "sgd" else torch.optim.Adam)
    close(train(net, wrapped, MINE, passes), expected, tolerance)


compare()
compare(kind="adam")
compare(passes=3)
compare(gradient_predivide_factor=2.0)
compare(groups=2)
compare(groups=lambda net: [[net[0].weight, net[3].weight]])
compare(tolerance=2e-2, compression=hvd.Compression.fp16)
compare(norm=hvd.SyncBatchNorm, reference=torch.nn.BatchNorm1d)


def clipping():
    net = network()
    optimizer = hvd.DistributedOptimizer(optimizer_of(net), named_parameters=net.named_parameters())
    torch.nn.functional.mse_loss(net(INPUTS[0, MINE]), TARGETS[0, MINE]).backward()
    optimizer.synchronize()
    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1e-3)
    assert hvd.allgather_object(float(norm)) == [float(norm)] * size
    with optimizer.skip_synchronize():
        optimizer.step()


def states():
    """Ranks start with other weights, options and state; afterwards they have those of rank 0."""
    torch.manual_seed(rank)
    net = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1 * (rank + 1))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    if rank == 0:
        net(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    before = [parameter.detach().clone() for parameter in net.parameters()]
    wrapped = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
    hvd.broadcast_optimizer_state(wrapped, root_rank=0)
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters())), "the state of an optimizer moved the weights"
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    assert wrapped.param_groups[0]["lr"] == 0.1 and len(wrapped.state) == 2
    net(torch.ones(1, 3)).sum().backward()
    wrapped.step()
    scheduler.step()
    assert wrapped.param_groups[0]["lr"] == 0.05  # the scheduler of before reaches the wrapped one
    every = hvd.allgather_object(torch.cat([p.detach().flatten() for p in net.parameters()]).tolist())
    assert every == [every[0]] * size


def some_ranks_use_some_parameters():
    net = torch.nn.ModuleList([torch.nn.Linear(2, 1) for _ in range(size)])
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=1.0), named_parameters=net.named_parameters())
    net[rank](torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert all(torch.allclose(layer.bias.grad, torch.full((1,), 1 / size)) for layer in net)


def embeddings():
    for dense in (False, True):
        torch.manual_seed(1)
        table = torch.nn.Embedding(4, 2, sparse=True)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(table.parameters(), lr=1.0), named_parameters=table.named_parameters(), sparse_as_dense=dense
        )
        before = table.weight.detach().clone()
        table(torch.tensor([rank, 3])).sum().backward()
        optimizer.step()
        expected = before.clone()
        expected[3] -= 1
        for other in range(size):
            expected[other] -= 1 / size
        close(table.weight.detach(), expected, 1e-6)


def adasum():
    """Steps of ranks that have nothing in common are added, and the same steps are one; others are refused."""
    net = torch.nn.Linear(size, 1, bias=False)
    torch.nn.init.zeros_(net.weight)
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), op=hvd.Adasum)
    net(torch.eye(size)[rank]).backward()
    if size == 3:
        try:
            optimizer.step()
        except NotImplementedError as refused:
            assert "hvd.Adasum of 3 ranks; it needs a power of two" in str(refused), refused
        else:
            raise AssertionError("3 ranks were not refused")
        return
    optimizer.step()
    close(net.weight.detach(), -torch.ones(1, size))
    optimizer.zero_grad()
    net(torch.ones(size)).backward()
    optimizer.step()
    close(net.weight.detach(), -2 * torch.ones(1, size))


for part in (adasum, clipping, states, some_ranks_use_some_parameters, embeddings):
    part()
print(f"rank {rank} of {size} is done")
