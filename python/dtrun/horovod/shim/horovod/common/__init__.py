"""horovod.common: what scripts import of it."""

import sys

from dtrun.horovod import elastic, exceptions, process_sets, util

sys.modules[f"{__name__}.exceptions"] = exceptions
sys.modules[f"{__name__}.process_sets"] = process_sets
sys.modules[f"{__name__}.elastic"] = elastic
sys.modules[f"{__name__}.util"] = util
