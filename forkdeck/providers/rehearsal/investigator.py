"""The investigator: an honest answer to what no scenario knows.

Called by the script player. It takes the words of the task, greps for them, reads around the
best hits, and reports file and line of what it found; it understands nothing and says so. All
it says comes from the tool results in the request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from forkdeck.model.raw import JsonDict
from forkdeck.providers.rehearsal.conversation import (
    NOTIFICATION,
    Answered,
    Conversation,
    result_text,
)
from forkdeck.providers.rehearsal.reply import Call, Reply

_MOST_WORDS: Final = 5
_MOST_FILES: Final = 2
_MOST_HITS: Final = 8
_AROUND: Final = 12
"""Lines read before a hit; twice as many after it."""

_FLAT: Final = re.compile(r"^([^\s:][^:\n]*):(\d+)[:-]\s?(.*)$")
_HEADING: Final = re.compile(r"^(?!\d+[:-])([^\s:][^:\n]*\.[A-Za-z0-9]+):?$")
_UNDER: Final = re.compile(r"^\s*(\d+)[:-]\s?(.*)$")
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_QUOTED: Final = re.compile(r"[`\"']([A-Za-z_][\w./-]{2,60})[`\"']")
_COMMON_WORDS: Final = """
about above after again against also and any anything are ask because been before being below
between both but call can cannot change check code could describe did does doing done down each
else every everything explain file files find fix for from further get give has have having help
here how into its itself just know let like list look make many may more most must need needs
new not now off once one only other our out over own part path please project repo repository
report run same search see should show simple some something such take task tell than that the
their them then there these they thing this those through too under until use used uses using
very want was way were what when where whether which while who why will with without work works
would write you your
"""
_COMMON: Final = frozenset(_COMMON_WORDS.split())


@dataclass(frozen=True)
class Hit:
    """One line that a search found."""

    path: str
    line: int
    text: str


def reply_to(talk: Conversation) -> Reply:
    """Return the next step of an investigation."""
    if talk.prompt.startswith(NOTIFICATION):
        return _reply("A fork has reported; its report stands above. What shall I do next?", talk)
    words = keywords(talk.task)
    if "grep" not in talk.tools or not words:
        return _reply(_nothing_to_search(words), talk)
    done = talk.rounds
    if not done:
        names = ", ".join(f"`{word}`" for word in words)
        search = Call("grep", {"pattern": "|".join(re.escape(word) for word in words)}, "hits")
        return _reply(f"I search the project for {names}.", talk, search)
    hits = find_hits(_results(done[:1]))
    if len(done) == 1 and hits and "read" in talk.tools:
        best = _best_files(hits, words)
        reads = tuple(_read_around(hits, path) for path in best)
        return _reply(f"The best hits are in {' and '.join(best)}. I read them.", talk, *reads)
    if len(done) == 1 and not hits and "ls" in talk.tools:
        return _reply("Nothing matches. I look what there is at all.", talk, Call("ls", {}, "ls"))
    return _reply(_report(talk, words, hits), talk)


def _reply(text: str, talk: Conversation, *calls: Call) -> Reply:
    source = f"investigator, step {len(talk.rounds) + 1}"
    thinking = "No script fits; I take the words of the task and search." if calls else ""
    return Reply(text=text, thinking=thinking, calls=calls, source=source)


def _nothing_to_search(words: Sequence[str]) -> str:
    if not words:
        return (
            "I am the scripted rehearsal model: I can search this project for the words you give "
            "me. This text has none to search for. Try a name from the code."
        )
    return (
        "I am the scripted rehearsal model. Without a `grep` tool I cannot search for "
        f"{', '.join(words)}, and I make nothing up."
    )


def keywords(task: str) -> tuple[str, ...]:
    """Return the words of a task worth searching, the most telling ones first."""
    weights: Counter[str] = Counter()
    for word in _QUOTED.findall(task):
        weights[word] += 100
    for word in _WORD.findall(task):
        if word.lower() in _COMMON:
            continue
        special = "_" in word or word[1:] != word[1:].lower()
        weights[word] += (40 if special else 0) + min(len(word), 12)
    found: list[str] = []
    for word, _ in weights.most_common():
        if not any(word.lower() in other.lower() for other in found):
            found.append(word)
    return tuple(found[:_MOST_WORDS])


def _results(done: Sequence[Answered]) -> str:
    return "\n".join(result_text(result) for entry in done for result in entry.results if result)


def find_hits(text: str) -> list[Hit]:
    """Read search output: ``path:line: text``, or a path and its lines below it."""
    hits: list[Hit] = []
    heading = ""
    for line in text.splitlines():
        flat = _FLAT.match(line)
        under = _UNDER.match(line)
        if flat:
            hits.append(Hit(flat[1], int(flat[2]), flat[3].strip()))
        elif under and heading:
            hits.append(Hit(heading, int(under[1]), under[2].strip()))
        elif named := _HEADING.match(line):
            heading = named[1]
    return hits


def _best_files(hits: Sequence[Hit], words: Sequence[str]) -> list[str]:
    """Return the files with the most different words, then the most hits."""
    kinds: dict[str, set[str]] = {}
    for hit in hits:
        low = hit.text.lower()
        kinds.setdefault(hit.path, set()).update(w for w in words if w.lower() in low)
    counts = Counter(hit.path for hit in hits)
    ranked = sorted(kinds, key=lambda path: (-len(kinds[path]), -counts[path], path))
    return ranked[:_MOST_FILES]


def _nearest(hits: Sequence[Hit], words: Sequence[str]) -> list[Hit]:
    """Order hits by the words they hold; the first words of the list weigh most."""

    def weight(hit: Hit) -> int:
        low = hit.text.lower()
        return sum(
            2 ** (_MOST_WORDS - place) for place, word in enumerate(words) if word.lower() in low
        )

    return sorted(hits, key=weight, reverse=True)


def _read_around(hits: Sequence[Hit], path: str) -> Call:
    first = min(hit.line for hit in hits if hit.path == path)
    start = max(1, first - _AROUND)
    fields: JsonDict = {"path": path, "offset": start, "limit": 3 * _AROUND}
    return Call("read", fields, path)


def _report(talk: Conversation, words: Sequence[str], hits: Sequence[Hit]) -> str:
    best = _best_files(hits, words)
    ordered = _nearest(hits, words)
    files = len({hit.path for hit in hits})
    searched = ", ".join(f"`{word}`" for word in words)
    if not hits:
        said = _results(talk.rounds[:1]).strip().splitlines()
        result = f"No line of the project matches. The search said: {said[0] if said else '-'}"
        keys = "none"
    else:
        shown = len(ordered[:_MOST_HITS])
        result = f"{len(hits)} lines in {files} files match; the {shown} nearest to the task:"
        lines = [f"- {hit.path}:{hit.line} `{_short(hit.text)}`" for hit in ordered[:_MOST_HITS]]
        result = "\n".join([result, *lines])
        keys = ", ".join(f"{path}:{_first_line(hits, path)}" for path in best)
    limits = (
        "I am a scripted model: I match words and do not understand the task, so these are places "
        "to look at, not conclusions. I changed nothing."
    )
    scope = f"a search for {searched}" + (
        f", and {' and '.join(best)} around the hits" * bool(best)
    )
    return (
        f"Scope: {scope}.\nResult: {result}\nKey files: {keys}\nFiles changed: none\n"
        f"Issues: {limits}"
    )


def _first_line(hits: Sequence[Hit], path: str) -> int:
    return min(hit.line for hit in hits if hit.path == path)


def _short(text: str) -> str:
    clean = text.replace("`", "'")
    return clean if len(clean) <= 90 else f"{clean[:89]}…"
