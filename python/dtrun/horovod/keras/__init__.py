"""horovod.keras over dtrun: the same as dtrun.horovod.tensorflow.keras, with TensorFlow's Keras."""

import sys

from ..tensorflow.keras import *  # noqa: F403
from ..tensorflow.keras import callbacks, elastic

sys.modules[f"{__name__}.callbacks"] = callbacks
sys.modules[f"{__name__}.elastic"] = elastic
