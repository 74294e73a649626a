"""Names that exist nowhere else: syllables of several sound-worlds, and composed English ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files
from random import Random
from typing import Any

from lab.data.world.facts import Split
from lab.data.world.kinds import read_table


@dataclass(frozen=True, slots=True)
class Sound:
    """Syllables out of which the names of one sound-world are made."""

    starts: tuple[str, ...]
    middles: tuple[str, ...]
    women: tuple[str, ...]
    men: tuple[str, ...]
    families: tuple[str, ...]
    towns: tuple[str, ...]


def _sound(starts: str, middles: str, women: str, men: str, families: str, towns: str) -> Sound:
    parts = (starts, middles, women, men, families, towns)
    return Sound(*(tuple(part.split()) for part in parts))


SOUNDS = (
    _sound(
        "Al Bren Cor Dal Fen Gar Hal Jor Kel Lor Mar Nor Orr Per Ros Sel Tor Ul Ver Wen",
        "a e i o en ar il an",
        "da na lla ra ssa thea mina ris",
        "dan ric mund bert vin ton rel las",
        "dane sett mer wold strand lock field vane ström quist",
        "holm vik stad mouth sund haven fjell by",
    ),
    _sound(
        "Ba Ce Da Fio Gia Lu Ma Ne Ori Pa Ra Sa Te Vi Zan Bel Cam Dor Est Mon",
        "lo ri ve ta no le mi ra si",
        "na tta lia ra nza sca della rina",
        "no rio sto ldo tto cio ndro vio",
        "etti elli anza orio azzo ucci avera ondi",
        "ara ello igno ina orra etto anzo una",
    ),
    _sound(
        "Bo Dra Goi Iva Ja Ko Lju Mi Ne Ra Sta Tve Vla Zo Bran Čer Dob Kra Mla Rad",
        "mi sla ro ve di na to ri",
        "na ka mila dica nja slava ruša vena",
        "mir slav din ko jan vit rad bor",
        "ović enko arek anski ačik ulec oveč ilov",
        "grad ovo nica ava ovec inje ištea anka",
    ),
    _sound(
        "Ade Bi Chi Da Efe Ife Ki Lo Mba Nga Olu Ra Sa Te Uzo Wa Ya Ze Nko Tu",
        "ba lo di ku na re mo sha ti",
        "ra sola mide la nya wina shiwe ke",
        "bayo tunde mbe ko dele nji kunle zo",
        "wole adi ogo eke umba anda oka isi",
        "ndi oro anga eko uru amba ili asha",
    ),
    _sound(
        "Aki Ha Hi Ka Ke Mi Na No Re Sa Shi Ta To Yo Yu Ma Ri So Ku Fu",
        "ra no mi ko ta ri shi ne",
        "ko mi e na yo ka ri ho",
        "ro ji ta o ki suke to ru",
        "moto naga tani zawa hara mizu shima oka",
        "zaki hama mura tsu kawa nami dani saka",
    ),
    _sound(
        "Aer Bryn Caer Dyl Eir Glan Hyw Ior Llew Mad Nef Owa Pryd Rhi Sio Tal Wyn Car Mor Gwen",
        "a o y e wy ia",
        "wen is ys eth id lian fair nedd",
        "yn od wyn ac gan for ell an",
        "dwr awr ennog adoc arth eddin owys ellis",
        "aber edd ogwy arth ellan ynog eifion adoc",
    ),
    _sound(
        "Ash Bar Farns Cald Dun Fair Grims Hard Ken Lang Mel Nether Pen Red Shel Thorn Up Whit Yar",
        "",
        "ina elle etta wyn ora isa line beth",
        "iel ard man ford win stan gar leigh",
        "combe wick worth ley bourne thwaite stead croft",
        "ham ford den minster bury church cliffe wold",
    ),
    _sound(
        "As Bah Dar Far Gul Jam Kha Lei Mah Nas Pari Ram Shir Tah Yas Zar Mir Nav Sor Roy",
        "a i ou an ar im",
        "eh ine isa ana ieh oush ila mah",
        "id an oud yar iar een ouz am",
        "zadeh pour abadi ouri ishan arian vand ani",
        "abad stan eh oun iz an gerd rud",
    ),
)  # fmt: skip

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


@cache
def known_words() -> frozenset[str]:
    """All words of the built-in set, in small letters: no invented name may be one of them."""
    folder = files("lab.data.builtin")
    texts = [item.read_text("utf-8") for item in folder.iterdir() if item.name.endswith(".jsonl")]
    return frozenset(re.findall(r"[^\W\d_]+", " ".join(texts).casefold()))


def in_split(name: str, split: Split) -> bool:
    """Whether a name belongs to a split: by a hash of its letters, half of them to each."""
    even = sha256(name.casefold().encode()).digest()[0] % 2 == 0
    return even == (split == "train")


@dataclass(slots=True)
class Namer:
    """Gives names that share no word with one another, for one world.

    ``avoid`` holds words (in small letters) that are no names, such as those of the wordings.
    """

    rng: Random
    split: Split
    avoid: Collection[str]
    sound: Sound = field(init=False)
    _used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.sound = self.rng.choice(SOUNDS)

    def person(self, woman: bool) -> tuple[str, str]:
        """A full name and the family name."""
        sound = self._some_sound()
        given = self._word(sound, sound.women if woman else sound.men)
        family = self._word(self._some_sound(0.85, sound), sound.families)
        return f"{given} {family}", family

    def named(self, sort: str) -> str:
        """A name for a sort of thing: a town, a ship, a book, or what the table has forms for."""
        if sort == "town":
            return self.town()
        if sort == "title":
            return self.pair("The {} {}")
        if sort == "ship":
            return self.pair("the {} {}") if self.rng.random() < 0.6 else f"the {self.family()}"
        places, families = _table()["places"], _table()["families"]
        if sort in places:
            return self._choice(places[sort]).format(self.town())
        return self._choice(families[sort]).format(self.family())

    def town(self) -> str:
        """A place's name."""
        sound = self._some_sound()
        return self._word(sound, sound.towns)

    def family(self) -> str:
        """A family name alone."""
        sound = self._some_sound()
        return self._word(sound, sound.families)

    def pair(self, form: str) -> str:
        """A composed name of an adjective and a noun, no word of which was used before."""
        while True:
            words = [self._choice(_table()["adjectives"]), self._choice(_table()["nouns"])]
            name = form.format(*(word.capitalize() for word in words))
            fresh = not self._used & set(words)
            if fresh and in_split(" ".join(words), self.split) and not known_words() >= set(words):
                self._used.update(words)
                return name

    def _choice(self, options: Sequence[str]) -> str:
        return self.rng.choice(options)

    def _some_sound(self, stay: float = 0.75, sound: Sound | None = None) -> Sound:
        kept = sound or self.sound
        return kept if self.rng.random() < stay else self.rng.choice(SOUNDS)

    def _word(self, sound: Sound, ends: tuple[str, ...]) -> str:
        while True:
            middle = self.rng.choice(sound.middles or ("",)) if self.rng.random() < 0.6 else ""
            name = self.rng.choice(sound.starts) + middle + self.rng.choice(ends)
            if self._fits(name):
                self._used.add(name.casefold())
                return name

    def _fits(self, name: str) -> bool:
        low = name.casefold()
        return (
            4 <= len(name) <= 11
            and not re.search(r"(.)\1\1|[aeiouy]{4}|[^aeiouyáéíóúöwč]{5}", low)
            and in_split(name, self.split)
            and low not in known_words()
            and low not in self.avoid
            and not any(low in word or word in low for word in self._used)
        )


@cache
def _table() -> dict[str, Any]:
    return read_table("names")
