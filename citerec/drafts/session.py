"""A session that fills a draft, place by place; steps can be taken back, and suggestions come at the end.

A function chooses what is cited at a place: it asks a person, or follows a rule.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from citerec.drafts.base import Place
from citerec.drafts.files import State
from citerec.drafts.filling import DraftHit, Filling, draft_hits
from citerec.drafts.suggest import suggestions
from citerec.errors import CiterecError
from citerec.index.build import Follower
from citerec.recommend import Recommender
from citerec.records import NO_FILTERS, Answer, Context, Filters, Paper

Done = Literal["cited", "skip", "back", "undo", "stale", "stopped"]
Choice = tuple[Done, list[Paper], str]
"""What is done at a place: the papers that it shall cite, if any, and a text that cites them."""


@dataclass(slots=True)
class FillSession:
    """Fills a draft with what `choose` picks. Its files are written after each pick.

    What others save meanwhile is read again: the draft, its bibliography, and those that the index is made from.

    Attributes:
        recommender: What finds papers; it is opened anew where the index grows.
        filling: The draft and its bibliography.
        choose: What is done at a place: `choose(session, context, place)`; an EOFError ends the session.
        say: Called with what was done.
        note: Called with what else is to be known; with `style="yellow"` where something went wrong.
        follower: Follows the bibliographies that the index is made from.
        filters: Which papers may be cited.
        citing: What is known of the paper that is written: `citing_id`, `citing_title`.
        writes: Whether files are written; if not, `filling.files` has the changes.
    """

    recommender: Recommender
    filling: Filling
    choose: "Callable[[FillSession, Context, Place], Choice]"
    say: Callable[[str], object]
    note: Callable[..., object]
    follower: Follower | None = None
    filters: Filters = NO_FILTERS
    citing: dict[str, Any] = field(default_factory=dict)
    writes: bool = True
    _opened: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, init=False)
    _past: list[tuple[int, State]] = field(default_factory=list, init=False)
    # The file with a place for a suggestion, which is never written.
    _marked: Path | None = field(default=None, init=False)

    def close(self) -> None:
        """Closes what was opened anew."""
        self._opened.close()

    @property
    def is_stale(self) -> bool:
        """Whether others have saved a file of the session."""
        return self.filling.files.is_stale(self._marked) or bool(self._saved())

    def search(
        self, context: Context, k: int, place: Place, *, explain: bool, own_first: bool
    ) -> tuple[Answer, list[DraftHit]]:
        """An answer, and its papers in the order in which they are shown: `draft_hits`."""
        most = min(k, self.recommender.index.most_hits)
        filters = replace(self.filters, exclude=(*self.filters.exclude, *self.filling.beside(place)))
        answer = self.recommender.search(context, most, filters, explain=explain, fold=True)
        return answer, draft_hits(answer, self.filling.bibliography, own_first=own_first)

    def fill(self) -> bool:
        """Goes from place to place; whether it came to the last one."""
        filling, skipped = self.filling, 0
        with contextlib.suppress(EOFError, KeyboardInterrupt):
            while skipped < len(filling.draft.places):
                if self._reload():
                    continue
                place = filling.draft.places[skipped]
                context = filling.draft.contexts(self.recommender.store, filling.cited, **self.citing)[skipped]
                done = self._fill(skipped, context, place)
                if done == "undo" and self._past:
                    skipped, texts = self._past.pop()
                    filling.restore(texts)
                    self._write(f"{filling.draft.places[skipped]}: taken back")
                else:
                    skipped = max(0, skipped + {"skip": 1, "back": -1}.get(done, 0))
        return skipped == len(filling.draft.places)

    def suggest(self) -> int:
        """Goes through sentences that may want a citation; how many cite something then."""
        cited, seen = 0, set[str]()
        with contextlib.suppress(EOFError, KeyboardInterrupt):
            while True:
                done, taken = self._suggest_some(seen)
                cited += taken
                if done != "stale":
                    break
                self._reload()
        return cited

    def _reload(self) -> bool:
        """Reads what others have saved, and adds to the index what is new in its bibliographies; whether they have."""
        if is_saved := self.filling.reload():
            self._past.clear()  # what others have saved is never taken back
        saved = self._saved()
        if self.follower and saved:
            index, names = self.follower.index, ", ".join(map(str, saved))
            try:
                self.follower.follow(saved)
                self.recommender = self._opened.enter_context(Recommender.open(index, self.recommender.recipe))
                self.note(f"{index} is up to date with {names}.")
            except CiterecError as error:
                self.note(f"{index} is not up to date with {names}: {error}", style="yellow")
        return is_saved or bool(saved)

    def _saved(self) -> list[Path]:
        """The bibliographies of the index that others have saved; that of the draft is written here too."""
        saved = self.follower.saved() if self.follower else []
        own = [self.filling.bibliography.path.resolve()] if self._past else []
        return [one for one in saved if one.resolve() not in own]

    def _fill(self, number: int, context: Context, place: Place) -> Done:
        """Cites what is chosen at a place."""
        done, papers, said = self.choose(self, context, place)
        if papers:
            self._past.append((number, self.filling.files.state()))
            self._write(f"{place}: {', '.join(self.filling.cite(number, papers, said))}")
        return done

    def _write(self, done: str) -> None:
        """Writes the files, and says what was done."""
        if self.writes:
            self.filling.files.write()
        self.say(done)

    def _suggest_some(self, seen: set[str]) -> tuple[str, int]:
        """Goes through those that were not `seen`, until a file is saved; what was done last, and how many cite."""
        filling, number, done = self.filling, 0, ""
        options: dict[str, Any] = {"filters": self.filters, **self.citing}
        every = suggestions(filling.draft, self.recommender, filling.files, filling.cited, **options)
        found = [one for one in every if one.sentence not in seen]
        # By the number of a suggestion that was taken: the texts before, and how much longer its file is since.
        taken: dict[int, tuple[State, int]] = {}
        while number < len(found):
            one, texts = found[number], filling.files.state()
            path, size = one.place.path, len(filling.files.text(one.place.path))
            before = (by for at, (_, by) in taken.items() if found[at].place.path == path and found[at].end <= one.end)
            end = one.end + sum(before)
            place, self._marked = filling.mark(path, end, one.marker), path
            try:
                done = self._fill(place, one.answer.context, one.place)
            except (EOFError, KeyboardInterrupt):
                done = "stopped"
            self._marked = None
            if done == "cited":
                taken[number] = texts, len(filling.files.text(path)) - size
            else:
                filling.unmark(path, end, one.marker)
            if done in ("stopped", "stale"):
                break
            if done in ("cited", "skip"):
                seen.add(one.sentence)
            if done == "undo" and taken:
                number, (texts, _) = taken.popitem()
                filling.restore(texts)
                self._write(f"{found[number].place}: taken back")
                continue
            number += -1 if done == "back" and number and number - 1 not in taken else done in ("cited", "skip")
        return done, len(taken)
