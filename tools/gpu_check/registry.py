"""The list of steps, in the order in which they were added."""

STEPS = []


def step(name, what, limit, device=True, several=False, torch=False, needs=()):
    """`limit`: seconds that it may take. `device`: it needs one. `several`: it needs an NCCL that joins processes. `torch`: it needs
    torch, and can be rehearsed on the CPU. `needs`: steps without which it is not worth its time."""

    def add(function):
        STEPS.append({"name": name, "what": what, "limit": limit, "device": device, "several": several, "torch": torch,
                      "needs": (needs,) if isinstance(needs, str) else needs, "run": function})
        return function

    return add
