"""horovod.keras: dtrun.horovod.keras."""

import sys

from dtrun.horovod.keras import *  # noqa: F403
from dtrun.horovod.keras import callbacks, elastic

sys.modules[f"{__name__}.callbacks"] = callbacks
sys.modules[f"{__name__}.elastic"] = elastic
