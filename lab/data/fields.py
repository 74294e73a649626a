"""Reading JSON with checks: every error names the file, the record and the field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

from lab.errors import LabError

_KINDS = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


_PACKED = (
    (b"\x1f\x8b", "gzip"), (b"PK\x03\x04", "zip"), (b"BZh", "bzip2"), (b"\xfd7zXZ", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)  # fmt: skip
"""What compressed files begin with."""


def kind(value: object) -> str:
    """What a JSON value is, in words."""
    return _KINDS.get(type(value), type(value).__name__)


@dataclass(frozen=True, slots=True)
class Record:
    """A JSON object together with the words that say where it stands."""

    data: Mapping[str, Any]
    where: str

    @classmethod
    def of(cls, value: object, where: str) -> Record:
        """The object as a Record; LabError if the value is anything else."""
        if not isinstance(value, dict):
            raise LabError(f"{where} must be an object, not {kind(value)}.")
        return cls(value, where)

    def get(self, name: str, wanted: type, default: Any = ...) -> Any:
        """The field's value, checked to be of the wanted JSON type."""
        if name not in self.data and default is not ...:
            return default
        if name not in self.data:
            raise LabError(f"{self.where} has no field {name!r}.")
        value = self.data[name]
        if type(value) is not wanted:
            raise LabError(
                f"{self.where}: field {name!r} must be {_KINDS[wanted]}, not {kind(value)}."
            )
        return value

    def text(self, name: str, default: Any = ...) -> str:
        """A string field. Lone surrogates, which no tokenizer can take, are an error."""
        return self.checked(self.get(name, str, default), name)

    def filled(self, name: str) -> str:
        """A string field that must hold more than white space, without white space at its ends."""
        value = self.text(name).strip()
        if not value:
            raise LabError(f"{self.where}: field {name!r} is empty.")
        return value

    def texts(self, name: str, default: Any = ...) -> list[str]:
        """A field that is a list of strings."""
        values = self.get(name, list, default)
        return [self.item_text(value, f"{name}[{i}]") for i, value in enumerate(values)]

    def item_text(self, value: object, name: str) -> str:
        """A value from inside a field, checked to be a string."""
        if not isinstance(value, str):
            raise LabError(f"{self.where}: {name} must be a string, not {kind(value)}.")
        return self.checked(value, name)

    def records(self, name: str, default: Any = ...) -> list[Record]:
        """A field that is a list of objects."""
        values = self.get(name, list, default)
        return [Record.of(value, f"{self.where}: {name}[{i}]") for i, value in enumerate(values)]

    def checked(self, value: str, name: str) -> str:
        """The string itself, or LabError where it is not valid Unicode."""
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise LabError(
                f"{self.where}: {name} holds half of a surrogate pair (\\ud800 to \\udfff), "
                "which is not text. Repair that escape."
            ) from None
        return value

    def only(self, names: frozenset[str]) -> None:
        """LabError if there is a field of any other name."""
        unknown = sorted(set(self.data) - names)
        if unknown:
            raise LabError(
                f"{self.where}: unknown field {', '.join(map(repr, unknown))}. "
                f"Known fields are {', '.join(sorted(names))}."
            )


def read_text(path: str | PathLike[str]) -> str:
    """The text of a UTF-8 file (a byte-order mark is dropped); LabError if that cannot be had."""
    file = Path(path)
    try:
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise LabError(f"There is no file {file}.{_nearby(file)}") from None
    except IsADirectoryError:
        raise LabError(f"{file} is a folder; name a file in it.{_inside(file)}") from None
    except UnicodeDecodeError as error:
        if packed := next((how for start, how in _PACKED if error.object.startswith(start)), ""):
            raise LabError(f"{file} is compressed ({packed}): unpack it first.") from None
        line = error.object[: error.start].count(b"\n") + 1
        raise LabError(
            f"{file} is not UTF-8: byte {error.start} (line {line}) cannot be read. "
            "Save it as UTF-8."
        ) from None
    except (OSError, ValueError) as error:
        raise LabError(f"{file} cannot be read: {error}.") from None


@overload
def read_json(path: str | PathLike[str], top: Literal["object"]) -> dict[str, Any]: ...
@overload
def read_json(path: str | PathLike[str], top: Literal["list"]) -> list[Any]: ...
def read_json(
    path: str | PathLike[str], top: Literal["object", "list"]
) -> dict[str, Any] | list[Any]:
    """The JSON value of a file, which must be an object (or a list)."""
    value = parse(read_text(path), str(path))
    if not isinstance(value, dict if top == "object" else list):
        article = "an object" if top == "object" else "a list"
        raise LabError(f"{path} must hold {article} at the top, not {kind(value)}.")
    return value


def read_jsonl(path: str | PathLike[str]) -> Iterator[Record]:
    """The objects of a JSON-lines file, one a line; blank lines are passed over."""
    # Only \n ends a record: text may hold U+2028 and other characters that splitlines cuts at.
    text = read_text(path)
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                record = Record.of(parse(line, where), where)
            except LabError as error:
                raise LabError(f"{error}{_other_lines(text)}") from None
            yield record


def _other_lines(text: str) -> str:
    """What to do with a file that is JSON, but not one object a line; empty for any other."""
    start = text.lstrip()
    try:
        value, end = json.JSONDecoder().raw_decode(start)
    except (ValueError, RecursionError):
        return ""
    if isinstance(value, list):
        return (
            " The file is one list, but must hold one object a line, without brackets and commas "
            "between them (jq -c '.[]' FILE writes them so)."
        )
    if "\n" in start[:end]:
        return (
            " Its first object runs over several lines, but each must be on a line of its own "
            "(jq -c . FILE writes them so)."
        )
    return ""


def parse(text: str, where: str) -> Any:
    """The value of a JSON text; LabError with the place where it breaks."""
    if not text.strip():
        raise LabError(f"{where} is empty.")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        end = len(text.rstrip())
        what = "is cut off" if error.pos >= end or "Unterminated" in error.msg else "is not JSON"
        raise LabError(
            f"{where} {what}: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    except (ValueError, RecursionError) as error:
        raise LabError(f"{where} is not usable JSON: {error}.") from None


def _nearby(file: Path) -> str:
    """A sentence on what stands where a missing file was looked for."""
    if not file.parent.is_dir():
        return f" There is no folder {file.parent} either."
    return _inside(file.parent)


def _inside(folder: Path) -> str:
    names = sorted(item.name for item in folder.iterdir() if item.suffix in {".json", ".jsonl"})
    if not names:
        return f" {folder} holds no .json or .jsonl file."
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f" {folder} holds {', '.join(names[:5])}{more}."
