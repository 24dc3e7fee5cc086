"""horovod.common: what scripts import of it."""

import sys

from dtrun.horovod import exceptions, process_sets
from dtrun.horovod.torch import elastic

sys.modules[f"{__name__}.exceptions"] = exceptions
sys.modules[f"{__name__}.process_sets"] = process_sets
sys.modules[f"{__name__}.elastic"] = elastic
