"""horovod.keras over dtrun: dtrun.horovod.tensorflow.keras, whose Keras is that of TensorFlow."""

import sys

from ..tensorflow.keras import *  # noqa: F403
from ..tensorflow.keras import callbacks, elastic

sys.modules[f"{__name__}.callbacks"] = callbacks
sys.modules[f"{__name__}.elastic"] = elastic
