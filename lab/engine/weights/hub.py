"""Models from the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from lab.engine.weights.quiet import reason
from lab.engine.weights.wheel import PACKAGED
from lab.errors import LabError


def from_hub(name: str) -> Path:
    """The local snapshot of a repository, downloaded if need be; pickles and code are not."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    unknown = (
        f"{name!r} is neither a file, a folder, a model of this package "
        f"({', '.join(PACKAGED)}), nor a hub id such as owner/model."
    )
    if "/" not in name or name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise LabError(unknown)
    try:
        folder = snapshot_download(
            name, allow_patterns=["*.json", "*.safetensors", "*.model", "*.jinja", "*.txt"]
        )
    except HFValidationError as error:
        raise LabError(unknown) from error
    except LocalEntryNotFoundError as error:
        raise LabError(
            f"{name} is not in the local cache and the Hugging Face hub cannot be "
            "reached. Check the network (and HF_HUB_OFFLINE), or name a local folder "
            "or .gguf file."
        ) from error
    except HfHubHTTPError as error:
        raise LabError(
            f"The Hugging Face hub refused {name}: {reason(error)} Check the spelling; "
            "a gated model needs `hf auth login` first."
        ) from error
    except OSError as error:
        raise LabError(
            f"{name} could not be fetched from the hub: {reason(error)} Check the "
            "network and the room on disk."
        ) from error
    return Path(folder)
