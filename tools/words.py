"""Counts names and sentences that are not the field's words, by package; none may be added.

    python tools/words.py             fails where a package has more than words_allowed.txt lets
    python tools/words.py --list core pronouns
                                      where they are, and what to write instead
    python tools/words.py --lower     writes today's counts to that file where they are smaller
    python tools/words.py --pages     words a page, options a help and the share of long sentences

Six things are counted: names with a metaphor in them; names that are a participle or a pronoun;
names of the glossary that the field calls otherwise; names of classes that stand twice in the
library; docstrings that begin with a question word; first lines of docstrings with a metaphor.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCES = {
    "hopefear": ROOT / "src" / "hopefear",
    "papers": ROOT / "papers" / "src" / "hopefear_papers",
    "bench": ROOT / "bench",
    "examples": ROOT / "examples",
    "tools": ROOT / "tools",
}
ALLOWED = Path(__file__).with_name("words_allowed.txt")
KINDS = ("metaphors", "pronouns", "glossary", "twice", "openings", "sentences")
LONG = 25  # words of a sentence

METAPHORS = re.compile(
    "crew|team|desk|shelf|shelves|crowd|road|vehicle|pile|stretch|stretches|twin|twins|sayings"
    "|octet|putter|gatherer|gathered|asker|desert|dismiss|meet|met|meetings?|born|die|died|dies"
    "|dead|death|live|lived|lives|alive|lie|lies|deal|dealt|goes|spent|mended|worn|unworn|earned"
    "|beside|passage|together|rehearsal|shunned"
)
PRONOUNS = re.compile(
    "found|kept|told|made|known|wanted|seen|given|shown|said|taken|gone|got|had|asked"
    "|ones?|others?|own|mine|ours|theirs|rest|most|more|some|any|all|which|what|how|who|whose"
    "|usual|whole|places?|such|same|it|them|this|that|those|these|both|each|every|things?"
    "|something|nothing|nobody"
)
_OPENING = re.compile(
    r"(?:What|How|Where|Wherever|Which|Who|Whose|Why|Whoever|Whatever)\b"
    r"|Whether (?:it|there|they|that|what)\b"
)
_SENTENCE = re.compile(
    r"\b(?:crew|desks?|books|shel(?:f|ves)|roads?|died|dies|lived|lives|dealt|lies|waits|told|tells?"
    r"|says?|said|asks|whoever|whatever|wherever|nobody|somebody|comes|goes|stands?|bears?|tried"
    r"|so many|so much|such an?|such as these|of its own|of their own|at hand|comes of)\b"
)

# Private words and the field's, by what they name.
FUNCTIONS = {
    "seek": "cost_augmented_argmax", "lacks": "why_unsupported", "offers": "supports",
    "n_coordinates": "n_weights",
    "violation": "prediction_margin", "lead": "margin_over", "charge": "output_cost",
    "expect": "nll_and_gradient", "expect_cost": "risk_and_gradient",
    "expect_good": "kl_and_gradient", "settles": "implies_gold_wins", "gram": "gram_matrix",
    "pull": "add_difference", "contrast": "assign_difference", "norm": "weighted_squared_norm",
    "announce": "prefetch_offsets", "fetch": "prefetch_example", "halves": "is_partitioned",
    "places": "n_positions", "above": "gold_head", "fault": "parameter_error",
    "objection": "incompatible_with", "refusal": "incompatible_with", "slope":
    "negative_derivative", "content": "is_mistake_driven", "notes": "new_scratch",
    "reading": "weight_view", "stride": "step_size", "worn": "needs_rescaling",
    "rebase": "rescale", "restart": "reset_scale",
    "replays": "needs_history", "with_room": "reserve",
    "trimmed": "shrink_to_fit", "sound": "is_valid", "afresh": "reset_window",
    "books": "accumulators", "expect_touch": "prefetch_memory", "alone": "needs_serial_updates",
    "touch": "on_update", "watched": "wrap_sink", "survive": "count_example",
    "settle": "flush", "ask": "prefetch", "hold": "stage_block", "spread": "add_block",
    "most_keys": "max_keys", "last_keys": "outermost_child_keys",
    "n_priced": "n_labels", "price": "label_cost", "in_turn": "sequential_reason",
    "help_out": "run_tasks", "once": "lockfree_cached_property",
    "use_up": "release_pages", "in_pages": "allocate_huge_pages", "in_lines": "aligned_rows",
    "leave_line": "sum_of_old_line", "enter_line": "sum_of_new_line", "lifted": "inverse_shrink",
    "scheduled": "learning_rate_at", "mixed_clock": "average_clock", "opened": "reopen",
    "pieces": "chunks", "whereabouts": "progress_text",
    "brief": "short_epochs", "stuck": "made_no_progress",
    "forget": "free_buffers", "share_out": "repeat_by_weight",
    "visits": "n_repeats", "let_go": "advise_dontneed", "ask_for": "advise_willneed",
    "while_read": "parse_while_decompressing", "facts": "metadata",
    "about": "metadata", "contests": "disagreements",
}  # fmt: skip
VALUES = {
    "readout": "averaging", "lam": "l2_per_epoch", "sharp": "inverse_temperature",
    "tied": "all_oracles", "nb_share": "nb_weight", "max_share": "max_df", "marks": "punctuation",
    "spot": "offset", "spots": "offsets", "live": "dirty", "ptr": "offsets",
    "begins": "offsets", "facts": "metadata", "about": "metadata", "tally": "counters",
    "pad": "scratch", "desk": "buffers",
}  # fmt: skip
CLASSES = {
    "Row": "GradientSink", "Pricing": "CostSource", "Rule": "UpdateRule",
    "Readout": "Averaging", "Crew": "SpinBarrier", "Team": "ThreadPool",
    "Account": "AverageAccumulator", "Plain": "DenseWeights", "Shrunk": "SoftThresholdedWeights",
    "Stretched": "AdaGradWeights", "Record": "GradientBuffer", "Mover": "UpdateSink",
    "Stack": "StackedStates", "Share": "ShardData", "Standing": "ProgressiveScores",
    "Fit": "TrainingResult", "Trained": "TrainedModel", "Stopping": "EarlyStopping",
    "Tally": "Counters", "Passes": "EpochOrder", "Whole": "FullBatch", "Pieces": "FixedChunks",
    "Answers": "Decoder", "Ranked": "KBest", "Ballot": "VotingView", "Replay": "VoteReplay",
    "Located": "DatasetRef", "Opened": "DatasetView", "Ahead": "ParsedChunks",
    "Pile": "GrowableArray", "Gathered": "Accumulator", "Noting": "ListBuilder",
    "Mended": "RepairedLabels", "Rewritten": "ConvertingReader", "Met": "FirstOccurrences",
    "Born": "FirstOccurrences", "Swept": "NumberedText", "Surface": "TaskCommand",
    "Use": "ModelCommands", "Rehearsal": "WarmUpCommands",
    "Corpus": "TrainingInput", "Desk": "RequestBatcher", "Shelf": "ModelRegistry",
    "Question": "Request", "Asker": "Client", "Case": "ErrorExample", "Evidence": "ReportData",
    "Passage": "TextInput", "Growing": "GrowableArray",
}  # fmt: skip
MODULES = {
    "readouts": "averaging", "crew": "barrier",
    "averages": "lazy_average", "stages": "progress", "symbols": "shared_kernels",
    "passes": "epoch_order", "theta": "part_scores", "mu": "part_gradient",
    "ranking": "k_best", "numbers": "parse_numbers", "tables": "text_formats",
    "reading": "python_input", "views": "string_features", "spelling": "feature_hashing",
    "surface": "task_command", "use": "model_commands", "guard": "exit_status",
    "origin": "provenance", "looks": "theme", "cases": "error_examples", "explaining": "explain",
    "showing": "display", "judging": "evaluate", "spaces": "search_spaces",
    "worlds": "enumeration", "frame": "runner", "derived": "text_features", "margins": "ssvm",
    "searches": "k_best",
}  # fmt: skip


class Flaw(NamedTuple):
    """A name or a sentence that the field would word otherwise."""

    package: str
    kind: str
    where: str
    text: str


def flaws_of(source: str, package: str, where: str) -> Iterator[Flaw]:
    """Yields flaws of one module, but for class names that are defined twice."""
    for part in Path(where).with_suffix("").parts[-1:]:
        if part in MODULES:
            yield Flaw(package, "glossary", f"{where}:1", f"module {part} → {MODULES[part]}")
    for node in ast.walk(ast.parse(source)):
        location = f"{where}:{getattr(node, 'lineno', 1)}"
        for name, better in _names(node):
            bare = name.strip("_") if better is not FUNCTIONS else name
            parts = re.findall("[A-Z]?[a-z]+|[A-Z]+(?![a-z])", bare)
            if any(METAPHORS.fullmatch(part.lower()) for part in parts):
                yield Flaw(package, "metaphors", location, name)
            elif PRONOUNS.fullmatch(bare.strip("_").lower()) and not name.startswith("__"):
                yield Flaw(package, "pronouns", location, name)
            elif bare in better:
                yield Flaw(package, "glossary", location, f"{name} → {better[bare]}")
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = (ast.get_docstring(node) or "").partition("\n\n")[0]
            if _OPENING.match(first):
                yield Flaw(package, "openings", location, first)
            if _SENTENCE.search(first):
                yield Flaw(package, "sentences", location, first)


def _names(node: ast.AST) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields names that a node defines, and the glossary for their kind."""
    if isinstance(node, ast.ClassDef):
        yield node.name, CLASSES
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name, FUNCTIONS
    elif isinstance(node, ast.arg):
        yield node.arg, VALUES
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id, VALUES
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr, VALUES


def library_flaws() -> list[Flaw]:
    """Lists the flaws of library, papers, benchmarks, examples and tools, by place."""
    flaws: list[Flaw] = []
    classes: dict[str, list[tuple[str, str]]] = {}
    for name, folder in SOURCES.items():
        for path in sorted(folder.rglob("*.py")):
            inner = path.relative_to(folder)
            package = inner.parts[0] if name == "hopefear" and inner.parts[1:] else name
            where, source = str(path.relative_to(ROOT)), path.read_text("utf-8")
            flaws += _once(flaws_of(source, package, where))
            for node in ast.walk(ast.parse(source)) if name == "hopefear" else ():
                if isinstance(node, ast.ClassDef):
                    classes.setdefault(node.name, []).append((package, f"{where}:{node.lineno}"))
    for class_name, definitions in classes.items():
        if len(definitions) > 1:
            flaws += [Flaw(package, "twice", where, class_name) for package, where in definitions]
    return flaws


def _once(flaws: Iterable[Flaw]) -> list[Flaw]:
    """Returns the flaws of a module with a name that is assigned twice in a line counted once."""
    return list(dict.fromkeys(flaws))


def read_allowed(text: str) -> Counter[tuple[str, str]]:
    """Reads the counts that are allowed, by package and kind."""
    allowed: Counter[tuple[str, str]] = Counter()
    for line in text.splitlines():
        if line and not line.startswith("#"):
            package, *counts = line.split()
            for kind, count in zip(KINDS, counts, strict=True):
                allowed[package, kind] = int(count)
    return allowed


def written(counts: Counter[tuple[str, str]]) -> str:
    """Returns the counts as a table with a row for each package that has any."""
    rows = [("# package", *KINDS)]
    for package in sorted({package for (package, _), count in counts.items() if count}):
        rows.append((package, *(str(counts[package, kind]) for kind in KINDS)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        )
        + "\n"
        for row in rows
    )


def risen(
    counts: Counter[tuple[str, str]], allowed: Counter[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Returns packages and kinds of which there are more than is allowed."""
    return [key for key in sorted(counts) if counts[key] > allowed[key]]


def page_report() -> str:
    """Returns words and long sentences of each page of the documentation, and options of help."""
    rows, all_long, all_sentences = [], 0, 0
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        sentences = [len(sentence.split()) for sentence in _sentences(path.read_text("utf-8"))]
        long = sum(words > LONG for words in sentences)
        all_long, all_sentences = all_long + long, all_sentences + len(sentences)
        if sentences:
            share = 100 * long / len(sentences)
            rows.append(
                f"{sum(sentences):7,d} words  {share:4.0f} % long  {path.relative_to(ROOT)}"
            )
    rows.append(
        f"{100 * all_long / max(all_sentences, 1):.1f} % of all sentences: over {LONG} words"
    )
    return "\n".join([*rows, *_option_counts()])


def _sentences(text: str) -> list[str]:
    """Returns sentences of a page's prose: no code, tables, headings or front matter."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    text = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.S | re.M)
    text = re.sub(r"<[^>]+>|!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)", text)
    prose = [block for block in blocks if not re.match(r"\s*(?:[#|:]|!!!|\?\?\?|=== )", block)]
    ends = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*])")
    return [sentence for block in prose for sentence in ends.split(block) if sentence.split()]


def _option_counts() -> list[str]:
    """Returns how many options each command's help has, as the golden surface records it."""
    pages = json.loads((ROOT / "tests/golden/surface.json").read_text("utf-8"))["interpreted"][
        "help"
    ]
    return [
        f"{len(set(re.findall(r'(?<![-a-z])--[a-z][-a-z]*', ' '.join(lines)))):7,d} options  {name}"
        for name, lines in pages.items()
    ]


def main(arguments: list[str] | None = None) -> int:
    """Runs the program; its exit status is 1 where a count has risen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", nargs=2, metavar=("PACKAGE", "KIND"), help="where they are")
    parser.add_argument("--lower", action="store_true", help="allow no more than there are today")
    parser.add_argument("--pages", action="store_true", help="words of pages and options of help")
    options = parser.parse_args(arguments)
    if options.pages:
        print(page_report())
        return 0
    flaws = library_flaws()
    if options.list:
        package, kind = options.list
        for flaw in flaws:
            if package in (flaw.package, "all") and kind in (flaw.kind, "all"):
                print(f"{flaw.where}: {flaw.kind}: {flaw.text}")
        return 0
    counts = Counter((flaw.package, flaw.kind) for flaw in flaws)
    allowed = read_allowed(ALLOWED.read_text("utf-8")) if ALLOWED.exists() else counts
    if options.lower:
        lowered = Counter({key: min(count, allowed[key]) for key, count in counts.items()})
        ALLOWED.write_text(written(lowered), encoding="utf-8")
    print(written(counts), end="")
    print(f"{sum(counts.values()):,d} in all")
    for package, kind in risen(counts, allowed):
        print(
            f"{package}: {counts[package, kind]} {kind}, {allowed[package, kind]} are allowed:"
            f" see `python tools/words.py --list {package} {kind}`",
            file=sys.stderr,
        )
    return 1 if risen(counts, allowed) else 0


if __name__ == "__main__":
    sys.exit(main())
