"""Where weights come from: the default model, GGUF files, folders and the hub, as local folders.

Nothing is unpickled and no code from a model repository is run. What is converted or fetched is
written under a temporary name and renamed when it is whole, so the cache never holds half a model.
"""

from lab.engine.weights.cache import cache_folder
from lab.engine.weights.find import Weights, check_room, find_weights
from lab.engine.weights.folder import is_whole, read_config
from lab.engine.weights.gguf import convert_gguf
from lab.engine.weights.quiet import quiet_transformers, reason
from lab.engine.weights.room import DTYPES
from lab.engine.weights.wheel import DEFAULT, PACKAGED, PackagedModel, packaged_folder

__all__ = [
    "DEFAULT",
    "DTYPES",
    "PACKAGED",
    "PackagedModel",
    "Weights",
    "cache_folder",
    "check_room",
    "convert_gguf",
    "find_weights",
    "is_whole",
    "packaged_folder",
    "quiet_transformers",
    "read_config",
    "reason",
]
