"""The comparison in words: a paragraph of methods with its own numbers, and warnings."""

from svae.compare._groups import Study
from svae.compare._measures import FEWEST_BOUTS, FREQUENT, IN_USE
from svae.compare._statistics import RELABELLINGS, SEED, SURE, is_exact, relabellings, smallest_p
from svae.compare._tables import LEVEL, Row

REFERENCES = (
    "Benjamini, Y. and Hochberg, Y. (1995). Journal of the Royal Statistical Society B 57, 289-300.",
    "Chung, E. and Romano, J. P. (2013). Annals of Statistics 41, 484-507.",
    "Hedges, L. V. (1981). Journal of Educational Statistics 6, 107-128.",
    "Welch, B. L. (1947). Biometrika 34, 28-35.",
)
OF_SEVERAL = (
    "Benjamini, Y. and Bogomolov, M. (2014). Journal of the Royal Statistical Society B 76, 297-318.",
    "Welch, B. L. (1951). Biometrika 38, 330-336.",
)


def methods(study: Study, tables: dict[str, list[Row]], about: dict[str, object]) -> str:
    """A paragraph to be put into a paper, and what it refers to."""
    sentences = [_segmented(about), _animals(study, about), _numbers(tables), _effects(), _tests(study)]
    sentences += [_several(study)] if len(study.groups) > 2 else []
    sentences += [_control(tables), _found(tables)]
    references = sorted([*REFERENCES, *(OF_SEVERAL if len(study.groups) > 2 else [])])
    return " ".join(sentences) + "\n\nReferences\n" + "\n".join(references) + "\n"


def _segmented(about):
    version = f" {about['version']}" if about["version"] else ""
    model = f" by a structured variational autoencoder ({about['model']}, svae{version})" if about["model"] else ""
    block = f" of the block {about['block']}" if about["block"] else ""
    return f"Recordings were divided into bouts of discrete states{block}{model}."


def _animals(study, about):
    sizes = ", ".join(f"{group} n = {n}" for group, n in zip(study.groups, study.sizes, strict=True))
    length = f" ({about['hours']:.3g} h)" if about["hours"] else ""
    return (
        f"{len(study.animals)} animals ({sizes}) with {len(study.recordings)} recordings{length} were compared by "
        f"{study.by}. The animal was the unit of all statistics: all recordings of an animal were pooled into one "
        f"number per measure."
    )


def _numbers(tables):
    counts = {name: len({row.key for row in rows}) for name, rows in tables.items()}
    return (
        f"Usage is the percentage of an animal's time in a state; duration is the geometric mean length of its bouts, "
        f"without the first and last bout of each recording, which the recording cuts off; a transition is the "
        f"percentage of the bouts of one state that another state follows. States with at least {100 * IN_USE:g} % of "
        f"the time of the average animal ({counts['usage']}) and transitions with at least {100 * FREQUENT:g} % "
        f"({counts['transitions']}) were tested, chosen without regard to group; an animal with fewer than "
        f"{FEWEST_BOUTS} bouts of a state was left out of the durations and transitions of that state."
    )


def _effects():
    level = f"{100 * SURE:g} %"
    return (
        f"Effects are differences between the means of groups (ratios of geometric means for durations) with {level} "
        f"intervals of Welch (1947), and Hedges' g (Hedges, 1981) with {level} intervals from the noncentral t "
        f"distribution."
    )


def _tests(study):
    kinds = [(a, b) for i, a in enumerate(study.sizes) for b in study.sizes[i + 1 :]]
    return (
        f"Groups were compared by two-sided permutation tests of Welch's t statistic (Chung and Romano, 2013), with "
        f"{_relabelled(kinds)} of the animals; the smallest p value that "
        f"{'this design' if len(kinds) == 1 else 'a pair of groups'} can give is {min(map(smallest_p, kinds)):.2g}."
    )


def _relabelled(kinds):
    """How many relabellings: of all pairs, the fewest and the most."""
    if not any(map(is_exact, kinds)):
        return f"{RELABELLINGS:,} random relabellings (seed {SEED})"
    counts = sorted(relabellings(sizes) for sizes in kinds if is_exact(sizes))
    span = f"{counts[0]:,}" if counts[0] == counts[-1] else f"{counts[0]:,} to {counts[-1]:,}"
    others = "" if all(map(is_exact, kinds)) else f" ({RELABELLINGS:,} random ones, seed {SEED}, in larger groups)"
    return f"all {span} relabellings{others}"


def _several(study):
    return (
        f"The {len(study.groups)} groups were first compared at once by the same test of Welch's statistic for several "
        f"groups (Welch, 1951), with {_relabelled([study.sizes])}, controlled over all of them; pairs of groups were "
        f"then compared within what this test selected, at the rate times the selected share (Benjamini and Bogomolov, "
        f"2014)."
    )


def _control(tables):
    tests = _listed([f"{sum(row.p == row.p for row in rows)} for {name}" for name, rows in tables.items()])
    return (
        f"The rate of false discoveries was held at {100 * LEVEL:g} % within each family of tests ({tests}) by the "
        f"procedure of Benjamini and Hochberg (1995)."
    )


def _found(tables):
    counts = [f"{sum(row.differs for row in rows)} of {len(rows)} in {name}" for name, rows in tables.items()]
    return f"At this rate, differences were found for {_listed(counts)}."


def _listed(parts):
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def warnings(study: Study, tables: dict[str, list[Row]]) -> list[str]:
    """What a careful reader should know before reading the p values."""
    found = []
    hopeless = [name for name, rows in tables.items() if _least_q(rows) > LEVEL]
    if hopeless:
        sizes = _listed([f"{n} {group}" for group, n in zip(study.groups, study.sizes, strict=True)])
        found.append(
            f"with {sizes} animals no single test of {_listed(hopeless)} can pass a false discovery rate of "
            f"{100 * LEVEL:g} % by itself, however large its effect; read the intervals, or add animals"
        )
    for name, rows in tables.items():
        missing = sum(row.p != row.p for row in rows)
        if missing:
            found.append(
                f"{missing} of {len(rows)} tests of {name} were not made: too few animals have at least "
                f"{FEWEST_BOUTS} bouts of the state"
            )
    return found


def _least_q(rows):
    """The q of a test that reaches its smallest p alone."""
    made = [row for row in rows if row.p == row.p]
    return min((smallest_p((row.n_a, row.n_b)) * len(made) for row in made), default=0.0)
