"""The head of the page: what was run, how it ended, what it took; nothing here needs the script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from askance.amounts import many
from askance.evals.report.markup import Markup, element
from askance.evals.report.tabled import interval_text, listed
from askance.evals.report.values import RESULTS
from askance.evals.reports import notes_of
from askance.evals.run_folder import PROMPTS
from askance.evals.tables import shown_value

if TYPE_CHECKING:
    from askance.evals.figures import Figure
    from askance.evals.report.values import RunPart, Spent


def section(identity: str, title: str, *content: Markup | None) -> Markup:
    """A part of the page with its heading, to be led to from the top."""
    return element(
        "section", element("h2", title, id=f"h-{identity}"), *content, id=identity, aria_labelledby=f"h-{identity}"
    )


def summary(part: RunPart, *, alone: bool) -> Markup:
    """One run: its main figure, how its answers ended, and what it was made of."""
    title = None if alone else element("h3", part.name)
    return element(
        "article",
        title,
        element("div", _main_figure(part), _outcomes(part), class_="lead"),
        element("dl", *_facts(part), class_="facts"),
        listed(notes_of([part.run])) if alone else None,
        _configuration(part),
        class_="run",
    )


def pictures_summary(part: RunPart, prompts: Mapping[str, str]) -> Markup:
    """Single pictures: how many are answered, what they were asked with, and what that took.

    Args:
        part: the pictures, as a run that nobody scores.
        prompts: texts of the prompt files, by name.
    """
    configuration = part.run.configuration
    digests: Mapping[str, Any] = configuration.get("solver", {}).get("prompts", {})
    facts = [
        *_fact("Chain", str(configuration.get("chain", ""))),
        *_fact("Models", *_models(configuration)),
        *_fact("Calls", *_calls(part.spent)),
        *_fact("Cost", *_cost(part.spent, len(part.rows))),
        *_fact("Time", f"{part.spent.seconds:,.1f} s in calls"),
        *_fact("Made by", f"askance {part.facts.get('askance', '?')}"),
    ]
    if digests:
        files = (_unfolded(name, _code(str(digest)), prompts.get(name)) for name, digest in sorted(digests.items()))
        facts.append(element("div", element("dt", "Prompts"), element("dd", *files), class_="broad"))
    answered = element(
        "div",
        element(
            "p",
            f"{part.outcomes.get('answered', 0):,}",
            element("span", f" of {len(part.rows):,}", class_="unit"),
            class_="big",
        ),
        element("p", "pictures answered", class_="soft"),
        class_="headline",
    )
    lead = element("div", answered, _outcomes(part), class_="lead")
    return element("article", lead, element("dl", *facts, class_="facts"), class_="run")


def _main_figure(part: RunPart) -> Markup | None:
    if not part.run.figures:
        return element("p", "Not finished: there are no figures yet.", class_="warning")
    figure = part.run.figures[0]
    unit = element("span", " %", class_="unit") if figure.percent and figure.value is not None else None
    about = f"{figure.metric} · {figure.answered:,} of {figure.samples:,} samples answered"
    return element(
        "div",
        element("p", shown_value(figure.value, percent=figure.percent), unit, class_="big"),
        element("p", _interval(figure), class_="num"),
        element("p", about, class_="soft"),
        class_="headline",
    )


def _interval(figure: Figure) -> str:
    level = 95 if figure.interval is None else 100 * figure.interval.level
    return f"{level:.0f} % interval {interval_text(figure)}"


def _outcomes(part: RunPart) -> Markup:
    """One bar of all samples by result, and the counts beside it, outcomes of non-answers by name."""
    total = max(sum(part.results.values()), 1)
    place = 0.0
    bars: list[Markup] = []
    for result, count in part.results.items():
        share = 100 * count / total
        kind = result.replace(" ", "-")
        bars.append(element("rect", x=f"{place:.3f}%", width=f"{share:.3f}%", y=0, height=14, class_=f"r-{kind}"))
        place += share
    counts = [
        element("li", element("i", class_=f"key r-{result.replace(' ', '-')}"), f"{RESULTS[result]} ", _count(count))
        for result, count in part.results.items()
    ]
    lost = [
        element("li", f"{outcome} ", _count(count), class_="soft")
        for outcome, count in part.outcomes.items()
        if outcome != "answered"
    ]
    label = ", ".join(f"{result} {count:,}" for result, count in part.results.items())
    svg = element("svg", *bars, class_="stack", width="100%", height=14, role="img", aria_label=label)
    left = f"{many(part.run.left, 'sample')} had no budget left." if part.run.left else None
    return element(
        "div",
        svg,
        element("ul", *counts, *lost, class_="legend"),
        element("p", left, class_="warning") if left else None,
        class_="outcomes",
    )


def _count(count: int) -> Markup:
    return element("b", f"{count:,}", class_="num")


def _facts(part: RunPart) -> Iterator[Markup]:
    configuration = part.run.configuration
    yield from _fact("Task", part.run.task)
    yield from _fact("Models", *_models(configuration))
    samples: Mapping[str, Any] = configuration.get("samples", {})
    digest = str(samples.get("digest", ""))
    yield from _fact("Data", f"{many(samples.get('count', len(part.rows)), 'sample')}, digest ", _code(digest))
    yield from _fact("Calls", *_calls(part.spent))
    yield from _fact("Cost", *_cost(part.spent, len(part.rows)))
    yield from _fact("Time", *_time(part))
    yield from _fact("Made by", f"askance {part.facts.get('askance', '?')}, run ", _code(part.facts.get("hash", "")))
    prompts: Mapping[str, Any] = configuration.get("solver", {}).get("prompts", {})
    if prompts:
        files = (_prompt(part, str(name), str(digest)) for name, digest in sorted(prompts.items()))
        yield element("div", element("dt", "Prompts"), element("dd", *files), class_="broad")


def _fact(name: str, *content: str) -> Iterator[Markup]:
    several = [each if isinstance(each, Markup) else element("span", each) for each in content]
    if several:
        yield element("div", element("dt", name), element("dd", *several))


def _code(digest: str) -> Markup:
    return element("code", digest[:12], title=digest)


def _models(configuration: Mapping[str, Any]) -> Iterator[str]:
    """Each model with what it does; where one does everything, it alone."""
    named: dict[str, list[str]] = {}
    for role, form in _roles(configuration):
        named.setdefault(_model(form), []).append(role)
    for name, roles in named.items():
        yield name if len(named) == 1 else f"{', '.join(roles)}: {name}"


def _roles(configuration: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    roles: Mapping[str, Any] = configuration.get("models", {}) or configuration.get("solver", {}).get("models", {})
    yield from roles.items()


def _model(form: Mapping[str, Any]) -> str:
    identity: Mapping[str, Any] = form.get("id", {})
    spec = ":".join(str(identity[each]) for each in ("provider", "model") if each in identity)
    sampling: Mapping[str, Any] = form.get("sampling") or {}
    drawn = ", ".join(f"{name} {value}" for name, value in sampling.items())
    named = str(identity.get("name") or spec)
    return f"{named} ({drawn})" if drawn else named


def _prompt(part: RunPart, name: str, digest: str) -> Markup:
    file = part.run.path / PROMPTS / name
    plain = "/" not in name and "\\" not in name  # anybody may have written the names, and the folder
    inside = plain and file.is_file() and not file.is_symlink()
    return _unfolded(name, _code(digest), file.read_text(encoding="utf-8", errors="replace") if inside else None)


def _unfolded(name: str, code: Markup, content: str | None) -> Markup:
    """A name with its hash, and below it the text, where it is there."""
    if content is None:
        return element("span", name, " ", code)
    return element("details", element("summary", name, " ", code), element("pre", content, tabindex=0))


def _calls(spent: Spent) -> Iterator[str]:
    yield f"{spent.calls:,} made, {spent.replayed:,} replayed" + (f", {spent.shared:,} shared" if spent.shared else "")
    if spent.again:
        yield f"{many(spent.again, 'try', 'tries')} again"
    if spent.input or spent.output:
        yield f"{many(spent.input, 'token')} in, {spent.output:,} out"


def _cost(spent: Spent, samples: int) -> Iterator[str]:
    if spent.unpriced == samples or (spent.unpriced and not spent.cost):
        yield "not known"
        return
    yield f"${spent.cost:,.4f}" if spent.cost < 1 else f"${spent.cost:,.2f}"
    if spent.unpriced:
        yield f"and {many(spent.unpriced, 'sample')} whose price is not known"


def _time(part: RunPart) -> Iterator[str]:
    yield f"{part.spent.seconds:,.1f} s in calls"
    started, finished = part.facts.get("started"), part.facts.get("finished")
    if finished:
        yield f"finished {_moment(finished)}" + (f", started {_moment(started)}" if started else "")
    else:
        yield "not finished"


def _moment(written: str) -> str:
    return written.replace("T", " ").replace("+00:00", " UTC")


def _configuration(part: RunPart) -> Markup:
    written = json.dumps(part.run.configuration, ensure_ascii=False, indent=2, sort_keys=True)
    return element(
        "details", element("summary", "Whole configuration"), element("pre", written, tabindex=0), class_="whole"
    )
