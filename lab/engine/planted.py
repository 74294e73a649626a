"""Planted models: small Llamas with hand-set weights, in which it is known which heads decide.

Prompts have six words: a start, an instruction, a filler, an object (the passage's answer), a
subject, and a cue at which the model decides. Every subject has an answer of its own in memory.
Three heads decide between the two answers:

- the *router* looks from the cue at the instruction and, if that asks for memory, marks the cue;
- the *copier* looks at the object and writes it, unless the cue is marked;
- the *memory* head looks at the subject and writes its answer: always, and more if the cue is
  marked.

Without the mark the copier outweighs the memory head; without any writer the model says
"unknown". The decoys are a head that *attends* to the object like the copier but writes where
nothing reads, a head whose write is *cancelled* by an MLP, and a *backup* that does the memory
head's work, more weakly, where that head is silent. All other heads are noise: random attention,
random writes.

The residual stream has a large constant part (ballast), so that RMS norms hardly change its scale,
and is turned by a random rotation, so that no direction is an axis. Attention scores use only those
pairs of dimensions that rotary embeddings, at this base, leave as they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.errors import LabError

if TYPE_CHECKING:
    import torch

    from lab.engine.lens import Lens

Head = tuple[int, int]

ANSWERS, SUBJECTS, FILLERS = 12, 24, 16
D_HEAD = 16
SLOW = (4, 5, 6, 7)
"""Query and key dimensions whose rotary frequency is at most 1e-6 at this base."""
ROPE_BASE = 1e12

BALLAST = 60.0
SINK = 10.0
"""Attention score of the first token: every planted head rests on it when it has nothing to do."""
UNEMBED = 10.0
"""Logit per unit of an answer's code."""

COPIES, REMEMBERS, BACKS_UP, CANCELS = 1.5, 1.0, 0.35, 1.0
"""How much of an answer's code each writer writes per unit of attention."""
MEMORY_UNMARKED = 0.8
"""The memory head's attention to the subject without the router's mark."""
UNKNOWN = 2.0
"""Logit of "unknown", in every run."""
NOISE = 0.5
"""Length of what all noise heads together write, about."""

FLAGS = ("ballast", "start", "from_memory", "subject", "object", "cue", "marked", "wrote")
CODES = ("object", "memory", "output", "twin", "filler", "unread")
D_MODEL = 80
"""Enough for FLAGS, and one code of ANSWERS dimensions for each of CODES."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One subject and one object, asked with both instructions.

    Attributes:
        from_memory, from_passage: token ids of the two prompts; they differ in the instruction.
        remembered, read: token ids of their answers.
        subject: number of the subject.
    """

    from_memory: tuple[int, ...]
    from_passage: tuple[int, ...]
    remembered: int
    read: int
    subject: int


SPANS = {"sink": (0,), "instruction": (1,), "context": (2, 3), "question": (4,), "cue": (5,)}
"""Positions of the parts of every prompt; the object is the last of the context."""


@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """A model with known heads, each as (layer, head).

    Attributes:
        lens: the model.
        router, copier, memory: the heads that decide.
        attends, cancelled, backup: the decoys.
        answer_of: for each subject the number of its answer in memory.
    """

    lens: Lens
    router: Head
    copier: Head
    memory: Head
    attends: Head
    cancelled: Head
    backup: Head
    answer_of: tuple[int, ...]

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads that decide, in order of layers."""
        return tuple(sorted((self.router, self.copier, self.memory)))

    def conflicts(self, n: int, seed: int = 0) -> list[Conflict]:
        """``n`` conflicts, each about another subject as long as there are any."""
        rng = np.random.default_rng([seed, 7])
        subjects = itertools.islice(itertools.cycle(rng.permutation(SUBJECTS).tolist()), n)
        found = []
        for subject in subjects:
            remembered = self.answer_of[subject]
            read = int(rng.choice([a for a in range(ANSWERS) if a != remembered]))
            filler = int(rng.integers(FILLERS))
            rest = (f"filler{filler}", f"answer{read}", f"subject{subject}", "cue")
            prompts = [token_ids("start", asked, *rest) for asked in ("remember", "read")]
            ids = token_ids(f"answer{remembered}", f"answer{read}")
            found.append(Conflict(prompts[0], prompts[1], ids[0], ids[1], subject))
        return found


WORDS = (
    "start", "remember", "read", "cue", "unknown",
    *(f"answer{i}" for i in range(ANSWERS)),
    *(f"subject{i}" for i in range(SUBJECTS)),
    *(f"filler{i}" for i in range(FILLERS)),
)  # fmt: skip
"""The vocabulary of every planted model."""


def token_ids(*words: str) -> tuple[int, ...]:
    """The ids of some of WORDS."""
    return tuple(WORDS.index(word) for word in words)


def planted_model(
    n_layers: int = 3, n_heads: int = 4, seed: int = 0, *, circuit: bool = True, check: bool = False
) -> Planted:
    """A planted model with its heads in random places.

    Args:
        n_layers: at least 3, as the router comes before the writers and the backup after them.
        n_heads: heads per layer, at least 2 and a divisor of the width, which is 80.
        seed: of places, codes, rotation and noise.
        circuit: False leaves only noise heads, so that no head matters for any answer.
        check: whether the Lens checks itself, as it does for other models.

    Raises:
        LabError: too few layers or heads.
    """
    if n_layers < 3 or n_heads < 2 or D_MODEL % n_heads:
        raise LabError(
            f"A planted model cannot have {n_layers} layers of {n_heads} heads: it needs at least "
            f"3 layers, and 2 or more heads that divide {D_MODEL}."
        )
    rng = np.random.default_rng([seed, n_layers, n_heads])
    places = _places(rng, n_layers, n_heads)
    answer_of = tuple(int(a) for a in rng.integers(ANSWERS, size=SUBJECTS))
    weights = _Weights(rng, n_layers, n_heads)
    weights.embed(answer_of)
    weights.noise(rng, set(places.values()) if circuit else set())
    if circuit:
        weights.circuit(places)
    return Planted(_lens(weights, n_layers, n_heads, seed, check), **places, answer_of=answer_of)


def _places(rng: np.random.Generator, n_layers: int, n_heads: int) -> dict[str, Head]:
    """A random head for each part: router before both writers, backup behind the memory head."""
    free = {(layer, head) for layer in range(n_layers) for head in range(n_heads)}
    found: dict[str, Head] = {}

    def put(name: str, layers: Sequence[int]) -> int:
        open_places = sorted(place for place in free if place[0] in layers)
        found[name] = open_places[rng.integers(len(open_places))]
        free.remove(found[name])
        return found[name][0]

    router = put("router", range(n_layers - 2))
    memory = put("memory", range(router + 1, n_layers - 1))
    put("backup", range(memory + 1, n_layers))
    for name in ("copier", "attends", "cancelled"):
        put(name, range(router + 1, n_layers))
    return found


class _Weights:
    """The weights, written in named directions and turned by one rotation at the end."""

    def __init__(self, rng: np.random.Generator, n_layers: int, n_heads: int) -> None:
        names = [*FLAGS, *(f"{c}{i}" for c in CODES for i in range(ANSWERS))]
        self.at = {name: i for i, name in enumerate(names)}
        self.turn = np.linalg.qr(rng.normal(size=(D_MODEL, D_MODEL)))[0]
        self.code = np.linalg.qr(rng.normal(size=(ANSWERS, ANSWERS)))[0]
        shape = (n_layers, n_heads, D_HEAD, D_MODEL)
        self.q, self.k, self.v, self.o = (np.zeros(shape) for _ in range(4))
        self.up = np.zeros((n_layers, ANSWERS, D_MODEL))
        self.down = np.zeros((n_layers, ANSWERS, D_MODEL))
        self.tokens = np.zeros((len(WORDS), D_MODEL))
        self.unembedding = np.zeros((len(WORDS), D_MODEL))

    def way(self, name: str) -> np.ndarray:
        """The unit vector of a flag."""
        vector = np.zeros(D_MODEL)
        vector[self.at[name]] = 1
        return vector

    def codes(self, name: str) -> np.ndarray:
        """The directions of a code: [number, d_model]."""
        start = self.at[f"{name}0"]
        return np.eye(D_MODEL)[start : start + ANSWERS]

    def answer(self, number: int, code: str) -> np.ndarray:
        """An answer, written in a code."""
        return np.asarray(self.code[number] @ self.codes(code))

    def embed(self, answer_of: Sequence[int]) -> None:
        """Embeddings and unembeddings of all words."""
        self.tokens += BALLAST * self.way("ballast")
        for word, flag in (("start", "start"), ("remember", "from_memory"), ("cue", "cue")):
            self.tokens[WORDS.index(word)] += self.way(flag)
        for i in range(ANSWERS):
            number = WORDS.index(f"answer{i}")
            self.tokens[number] += self.way("object") + self.answer(i, "object")
            self.unembedding[number] = UNEMBED * self.answer(i, "output")
        for i in range(SUBJECTS):
            own = self.way("subject") + self.answer(answer_of[i], "memory")
            self.tokens[WORDS.index(f"subject{i}")] += own
        for i in range(FILLERS):
            self.tokens[WORDS.index(f"filler{i}")] += self.answer(i % ANSWERS, "filler")
        self.unembedding[WORDS.index("unknown")] = UNKNOWN / BALLAST * self.way("ballast")

    def noise(self, rng: np.random.Generator, taken: set[Head]) -> None:
        """Random heads in all other places.

        They read everything but the ballast and what the decoys write, and write to the output
        and to where the fillers are.
        """
        seen = np.ones(D_MODEL)
        seen[self.at["ballast"]] = 0
        seen -= self.codes("twin").sum(0) + self.codes("unread").sum(0)
        room = np.concatenate([self.codes("output"), self.codes("filler")])
        places = list(np.ndindex(self.q.shape[:2]))
        for layer, head in places:
            if (layer, head) in taken:
                continue
            self.q[layer, head] = rng.normal(size=(D_HEAD, D_MODEL)) * seen
            self.k[layer, head] = rng.normal(size=(D_HEAD, D_MODEL)) * seen
            self.v[layer, head] = rng.normal(size=(D_HEAD, D_MODEL)) * seen / math.sqrt(D_HEAD)
            self.o[layer, head] = rng.normal(size=(D_HEAD, len(room))) @ room
            self.o[layer, head] *= NOISE / math.sqrt(len(room) * len(places))

    def circuit(self, places: dict[str, Head]) -> None:
        """The heads that decide, and the decoys."""
        logit = math.log(MEMORY_UNMARKED / (1 - MEMORY_UNMARKED))
        flag = {"marked": self.way("marked"), "wrote": self.way("wrote")}
        self._look(places["router"], "from_memory", 8)
        self._carry(places["router"], self.way("from_memory")[None], flag["marked"][None])

        self._look(places["memory"], "subject", logit, 6 * flag["marked"])
        self._carry(
            places["memory"],
            np.concatenate([self.codes("memory"), self.way("subject")[None]]),
            np.concatenate([REMEMBERS * self.codes("output"), flag["wrote"][None]]),
        )
        self._look(places["backup"], "subject", 10, -20 * flag["wrote"])
        self._carry(places["backup"], self.codes("memory"), BACKS_UP * self.codes("output"))

        for name in ("copier", "attends", "cancelled"):
            self._look(places[name], "object", 8, -16 * flag["marked"])
        self._carry(places["copier"], self.codes("object"), COPIES * self.codes("output"))
        self._carry(places["attends"], self.codes("object"), self.codes("unread"))
        both = CANCELS * (self.codes("output") + self.codes("twin"))
        self._carry(places["cancelled"], self.codes("object"), both)
        layer = places["cancelled"][0]
        self.up[layer], self.down[layer] = self.codes("twin"), -self.codes("output")

    def _look(self, head: Head, target: str, score: float, change: Any = 0.0) -> None:
        """Attention to a flagged token at ``score`` above the sink's, changed by the query."""
        constant = self.way("ballast") / BALLAST
        scale = math.sqrt(D_HEAD)  # which attention divides by
        first, second = SLOW[:2]
        self.q[head][first] = scale * constant
        self.k[head][first] = SINK * self.way("start") + (SINK + score) * self.way(target)
        self.q[head][second] = scale * change
        self.k[head][second] = self.way(target)

    def _carry(self, head: Head, read: np.ndarray, written: np.ndarray) -> None:
        """What is read at the attended token is written at the reader, row by row."""
        self.v[head][: len(read)] = read
        self.o[head][: len(written)] = written

    def state(self) -> dict[str, torch.Tensor]:
        """The weights by Llama's names, in the turned basis."""
        import torch

        turned = {
            "model.embed_tokens.weight": self.tokens @ self.turn,
            "lm_head.weight": self.unembedding @ self.turn,
            "model.norm.weight": np.full(D_MODEL, BALLAST / math.sqrt(D_MODEL)),
        }
        norm = turned["model.norm.weight"]
        gate = np.tile(20 * self.way("ballast") / BALLAST, (ANSWERS, 1)) @ self.turn
        for layer in range(len(self.q)):
            at = f"model.layers.{layer}."
            for name, heads in (("q", self.q), ("k", self.k), ("v", self.v)):
                flat = heads[layer].reshape(-1, D_MODEL) @ self.turn
                turned[f"{at}self_attn.{name}_proj.weight"] = flat
            turned[f"{at}self_attn.o_proj.weight"] = (
                self.o[layer].reshape(-1, D_MODEL) @ self.turn
            ).T
            turned[f"{at}mlp.gate_proj.weight"] = gate  # silu(20) = 20: the MLP is linear
            turned[f"{at}mlp.up_proj.weight"] = self.up[layer] @ self.turn
            turned[f"{at}mlp.down_proj.weight"] = (self.down[layer] @ self.turn).T / 20
            turned[f"{at}input_layernorm.weight"] = norm
            turned[f"{at}post_attention_layernorm.weight"] = norm
        return {name: torch.tensor(value, dtype=torch.float32) for name, value in turned.items()}


def _lens(weights: _Weights, n_layers: int, n_heads: int, seed: int, check: bool) -> Lens:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from lab.engine.lens import lens_from

    config = LlamaConfig(
        vocab_size=len(WORDS), hidden_size=D_MODEL, intermediate_size=ANSWERS,
        num_hidden_layers=n_layers, num_attention_heads=n_heads, num_key_value_heads=n_heads,
        head_dim=D_HEAD, max_position_embeddings=64, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
        rms_norm_eps=1e-6, bos_token_id=0, eos_token_id=0, attn_implementation="eager",
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    model.load_state_dict(weights.state())
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, "unknown"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="start", eos_token="start", unk_token="unknown"
    )
    name = f"a planted model of {n_layers} x {n_heads} heads, seed {seed}"
    return lens_from(model, fast, name=name, check=check)
