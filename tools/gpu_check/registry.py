"""The list of steps, in registration order."""

STEPS = []


def step(name, what, limit, device=True, several=False, torch=False, needs=()):
    """`limit`: maximum seconds. `device`: needs a device. `several`: needs an NCCL that connects processes. `torch`:
    needs torch, and can be rehearsed on the CPU. `needs`: steps that must have passed before this one is worth its
    time."""

    def add(function):
        STEPS.append({"name": name, "what": what, "limit": limit, "device": device, "several": several, "torch": torch,
                      "needs": (needs,) if isinstance(needs, str) else needs, "run": function})
        return function

    return add
