"""What the programs of this folder share: functions named check_* run one after another, on every rank."""

import warnings

import torch
import torch.distributed as dist

warnings.simplefilter("ignore", FutureWarning)  # names that torch 2.13 deprecates and that programs use


def equal(got, expected):
    got, expected = torch.as_tensor(got), torch.as_tensor(expected)
    assert got.shape == expected.shape and torch.equal(got.to(torch.float64), expected.to(torch.float64)), (
        f"{got} is not {expected}"
    )


def refused(call, kind, *texts):
    try:
        call()
    except kind as failure:
        for text in texts:
            assert text in str(failure), f"'{text}' is not in: {failure}"
        return
    raise AssertionError(f"it was not rejected: {kind}, {texts}")


VERSION = tuple(map(int, torch.__version__.split(".")[:2]))


def needs_torch(*version):
    """Of a check: what it uses is not in older ones, or does not work there with any backend."""

    def mark(check):
        check.needed = version
        return check

    return mark


needs_torch_2 = needs_torch(2, 0)


def run(*modules):
    dist.init_process_group("dtrun")
    rank, world = dist.get_rank(), dist.get_world_size()
    checks = [check for module in modules for name, check in vars(module).items() if name.startswith("check_")]
    checks = [check for check in checks if VERSION >= getattr(check, "needed", (1, 13))]
    for check in checks:
        check(rank, world)
        dist.barrier()
    dist.destroy_process_group()
    print(f"rank {rank} of {world}: {len(checks)} checks hold", flush=True)
