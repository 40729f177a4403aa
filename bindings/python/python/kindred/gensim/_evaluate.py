"""Evaluation by test sets, with gensim's rules and return types."""

from __future__ import annotations

import io
import logging
from itertools import chain
from typing import Any

import numpy as np

import kindred

from ._files import opened
from ._search import Search
from .._errors import UnsupportedError

logger = logging.getLogger(__name__)

Section = dict[str, Any]
Four = tuple[str, str, str, str]


class Evaluation(Search):
    """Test sets of analogies and of word pairs."""

    def evaluate_word_analogies(
        self, analogies: Any, restrict_vocab: int | None = 300000, case_insensitive: bool = True, dummy4unknown: bool = False,
        similarity_function: str = "most_similar",
    ) -> tuple[float, list[Section]]:  # fmt: skip
        """The accuracy on a test set of analogies in the form of questions-words.txt. All questions are searched in one batch.

        Args:
            analogies: the file.
            restrict_vocab: the number of first rows that are searched; questions with other words are left out.
            case_insensitive: whether words are compared in upper case. Of words that differ by case the first counts.
            dummy4unknown: whether questions with unknown words count as wrong, instead of being left out.
            similarity_function: ``most_similar`` only. (gensim ignores this.)

        Returns:
            The accuracy, and the sections: ``{"section": name, "correct": [four words], "incorrect": [four words]}``; the last one,
            ``Total accuracy``, is the sum. It is 0.0 if there is no question.
        """
        if similarity_function != "most_similar":
            raise UnsupportedError("`similarity_function` can only be 'most_similar'; `kindred.Model.evaluate` has other methods")
        rows = self._rows_of_first(restrict_vocab, case_insensitive)
        (sections, questions), unknown = _questions(analogies, case_insensitive), 0
        known = [four for _, four in questions if all(word in rows for word in four)]
        predicted = dict(zip(known, self._predictions(known, rows, restrict_vocab, case_insensitive)))
        for section, four in questions:
            if four in predicted:
                sections[section]["correct" if predicted[four] == four[3] else "incorrect"].append(four)
            else:
                unknown += 1
                if dummy4unknown:
                    sections[section]["incorrect"].append(four)
        both = {name: list(chain.from_iterable(section[name] for section in sections)) for name in ("correct", "incorrect")}
        sections.append({"section": "Total accuracy", **both})
        for one in sections:
            self.log_accuracy(one)
        logger.info("questions with unknown words: %.1f%%", 100 * unknown / max(len(questions), 1))
        answered = len(both["correct"]) + len(both["incorrect"])
        return (len(both["correct"]) / answered if answered else 0.0), sections

    def _predictions(
        self, questions: list[Four], rows: dict[str, int], restrict_vocab: int | None, case_insensitive: bool
    ) -> list[str | None]:
        """The fourth word of each question, as gensim chooses it: of the five nearest, the first that is none of the three."""
        queries, asked = [], []
        for at, (a, b, c, _) in enumerate(questions):
            try:
                queries.append(self._query([rows[b], rows[c]], [rows[a]])[0])
                asked.append(at)
            except kindred.ZeroVectorError:
                # Words that cancel out predict nothing.
                pass
        found: list[str | None] = [None] * len(questions)
        if not queries:
            return found
        first = {} if restrict_vocab is None else {"vocab_limit": len(self._keys()[:restrict_vocab])}
        # Five, and the three that may be among them.
        nearest = self.model.nearest(np.stack(queries), k=8, **first).indices  # type: ignore[call-overload]
        words = self.model.words
        for at, line in zip(asked, nearest):
            ignored = questions[at][:3]
            own = {rows[word] for word in ignored}
            for row in [row for row in line.tolist() if row >= 0 and row not in own][:5]:
                word = words[row].upper() if case_insensitive else words[row]
                found[at] = word
                if word in rows and word not in ignored:
                    break
        return found

    def evaluate_word_pairs(
        self, pairs: Any, delimiter: str = "\t", encoding: str = "utf8", restrict_vocab: int | None = 300000,
        case_insensitive: bool = True, dummy4unknown: bool = False,
    ) -> tuple[Any, Any, float]:  # fmt: skip
        """How well similarities agree with people's. Needs SciPy.

        Args:
            pairs: a file with two words and a number in a line; lines that begin with ``#`` are left out.
            delimiter, encoding: of the file.
            restrict_vocab, case_insensitive: as of `evaluate_word_analogies`.
            dummy4unknown: whether pairs with unknown words have the similarity 0, instead of being left out.

        Returns:
            Pearson's and Spearman's correlations with their p-values, as SciPy's results; and the percentage of pairs with
            unknown words.

        Raises:
            InvalidValueError: no pair of the file can be compared.
            ImportError: SciPy is not installed.
        """
        try:
            from scipy import stats  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise ImportError("evaluate_word_pairs needs SciPy: pip install scipy") from error
        rows = self._rows_of_first(restrict_vocab, case_insensitive)
        people: list[float] = []
        model: list[float] = []
        unknown = 0
        with opened(pairs, "rb") as file, io.TextIOWrapper(file, encoding=encoding) as text:
            lines = list(text)
        for number, line in enumerate(lines, 1):
            if line.startswith("#"):
                continue
            try:
                a, b, expected = (line.upper() if case_insensitive else line).split(delimiter)
                score = float(expected)
            except ValueError:
                logger.info("%s: line %d is no pair with a number, and is left out", pairs, number)
                continue
            if a in rows and b in rows:
                model.append(float(self.similarity(rows[a], rows[b])))
                people.append(score)
                continue
            unknown += 1
            if dummy4unknown:
                model.append(0.0)
                people.append(score)
        if not people:
            raise kindred.InvalidValueError(
                f"{pairs} has no pair that can be compared: its delimiter is not {delimiter!r}, or {self} has none of its words",
                field="pairs",
            )
        pearson, spearman = stats.pearsonr(people, model), stats.spearmanr(people, model)
        ratio = 100 * unknown / (len(people) if dummy4unknown else len(people) + unknown)
        self.log_evaluate_word_pairs(pearson, spearman, ratio, pairs)
        return pearson, spearman, ratio

    def _rows_of_first(self, restrict_vocab: int | None, case_insensitive: bool) -> dict[str, int]:
        rows: dict[str, int] = {}
        for row, key in enumerate(self._keys()[:restrict_vocab]):
            rows.setdefault(key.upper() if case_insensitive else key, row)
        return rows

    @staticmethod
    def log_accuracy(section: Section) -> None:
        """Writes a section's accuracy to the log, if it has questions."""
        correct, wrong = len(section["correct"]), len(section["incorrect"])
        if correct + wrong:
            logger.info("%s: %.1f%% (%d/%d)", section["section"], 100 * correct / (correct + wrong), correct, correct + wrong)

    @staticmethod
    def log_evaluate_word_pairs(pearson: Any, spearman: Any, oov: float, pairs: Any) -> None:
        """Writes the results of `evaluate_word_pairs` to the log."""
        logger.info("Pearson's correlation with %s: %.4f", pairs, pearson[0])
        logger.info("Spearman's rank correlation with %s: %.4f", pairs, spearman[0])
        logger.info("pairs with unknown words: %.1f%%", oov)


def _questions(path: Any, case_insensitive: bool) -> tuple[list[Section], list[tuple[int, Four]]]:
    """The sections, still empty, and the questions with the numbers of their sections."""
    sections: list[Section] = []
    questions: list[tuple[int, Four]] = []
    with opened(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            line = raw.decode("utf8")
            if line.startswith(": "):
                sections.append({"section": line.lstrip(": ").strip(), "correct": [], "incorrect": []})
                continue
            if not sections:
                raise kindred.InvalidValueError(f"{path}: line {number} comes before the first section, `: NAME`", field="file")
            words = (line.upper() if case_insensitive else line).split()
            if len(words) == 4:
                questions.append((len(sections) - 1, (words[0], words[1], words[2], words[3])))
            else:
                logger.info("%s: line %d does not have four words, and is left out", path, number)
    return sections, questions
