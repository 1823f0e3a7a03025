"""The words of a report, each explained once: the page links to them, and docs/glossary.md holds the same text."""

TERMS = {
    "state": (
        "One of the discrete actions that the model tells apart. Every frame has a most probable state. A state "
        "has a number and a colour, and people can give it a name."
    ),
    "block": (
        "A variable of the latent graph with a name, such as a chain of states. Where a graph has several discrete "
        "blocks, each has states, bouts and colours of its own."
    ),
    "bout": "Frames in a row in one state, from its onset to its end.",
    "ethogram": "The most probable state of every frame along a recording, as a band of colours.",
    "latent": (
        "A few numbers that stand for one frame. The model infers them from the recording; networks map between "
        "them and the data. A latent has a mean and a standard deviation in every frame."
    ),
    "latent dimension": "How many numbers a latent has (--latent-dim).",
    "principal component": (
        "A direction in which frames vary, such as a way to bend: the first is that in which they vary most, the next "
        "that in which they vary most beside it, and so on. A fit begins with one for each latent dimension, except "
        "where its networks cannot; what those leave out counts as noise."
    ),
    "bound": (
        "The evidence lower bound: a number that training raises, and that never exceeds the log likelihood of the "
        "data. It is given in nats per frame, and higher is better."
    ),
    "nats": (
        "The unit of log likelihoods with the natural logarithm. One nat per frame more means that each frame is "
        "2.7 times as probable under the model. Only differences on the same data can be compared."
    ),
    "held out": (
        "Recordings, or the ends of recordings, that the fit does not see. A bound on them says how well the model "
        "generalises."
    ),
    "restart": (
        "Another fit of the same data from another random start. Where restarts find different states, none of "
        "them should be trusted alone."
    ),
    "adjusted Rand index": "How far two segmentations agree, corrected for chance: 1 for the same bouts, 0 for chance.",
    "found again": (
        "How well a state of the fit has its like in other restarts, or in other starts of the search for states: the "
        "frames that it has in common with the most similar state there, as a share of all frames of the two, averaged "
        "over them. 1 is the same state every time; below 0.5 its boundaries depend on chance."
    ),
    "without states": (
        "Said of a recording made from the real one by giving its waves random phases: it moves as fast, as far and as "
        "smoothly, but nothing in it switches. What states gain there they gain by cutting smooth movement into pieces."
    ),
    "baseline": (
        "A plain model of the same recordings, such as PCA with an autoregressive hidden Markov model, that the "
        "fit is compared with on held-out data."
    ),
    "stickiness": "The preference of the prior for staying in a state. A higher stickiness gives longer bouts.",
    "target duration": (
        "The mean length of a bout that is asked for (--target-duration). The stickiness is chosen to reach it, "
        "unless it would destroy states; without one, it is chosen from how slowly the data change."
    ),
    "transition": "The end of a bout of one state and the onset of a bout of another.",
    "dynamics": "The linear map x → A x + b that moves the latent from one frame to the next in a state, with noise.",
    "eigenvalues": (
        "Of A: how fast the latent returns to rest in a state and how fast it turns. A modulus near 1 fades "
        "slowly, above 1 it grows; the angle is the turn in one frame, which gives a frequency."
    ),
    "flow": "Where the dynamics of a state move a latent in one frame, A x + b − x, drawn as stream lines.",
    "reconstruction": "The frame that the model draws from the latent of a recorded frame.",
    "forecast": "Frames after a moment, drawn from the model that has seen only what came before.",
    "calibration": "Whether a 90 % interval holds the truth in 90 % of the cases.",
    "missing": (
        "An entry without a value: empty or NaN in the file, or a point that its tracker was not confident of. The "
        "model leaves it out and fills it in."
    ),
    "confidence": (
        "How sure a tracker was of a point, from 0 to 1, as its file says (DeepLabCut: likelihood). Below 0.3 the "
        "point counts as missing; above it the number is told and weighs nothing."
    ),
    "body length": (
        "The distance from nose to tail. Speeds are given in median body lengths, so that they can be compared "
        "between cameras."
    ),
    "spread": "In a figure, the middle half of the bouts: from the first to the third quartile.",
}

OF_DYNAMICS = ("dynamics", "eigenvalues", "flow")
OF_SECTIONS = {
    "summary": ("state", "bout", "latent", "bound", "held out", "nats"),
    "training": ("bound", "held out", "nats"),
    "trust": ("restart", "adjusted Rand index", "found again", "without states", "baseline", "missing", "confidence"),
    "ethogram": ("ethogram", "state", "bout", "block"),
    "states": ("state", "bout", "found again", "body length", "spread", "missing", "confidence", *OF_DYNAMICS),
    "transitions": ("transition", "stickiness", "target duration"),
    "similarity": ("nats", "dynamics"),
    "latents": ("latent", "principal component", "flow"),
    "forecast": ("forecast", "calibration"),
    "model": ("latent", "state", "block"),
}


def anchor(term: str) -> str:
    """The name of its place on the page."""
    return f"word-{term.replace(' ', '-')}"


def as_markdown() -> str:
    """The text of docs/glossary.md."""
    rows = "\n".join(f"| {term} | {words} |" for term, words in sorted(TERMS.items(), key=lambda pair: pair[0].lower()))
    head = "The words of a report, of the viewer and of these pages. Every report holds them too and links to them.\n"
    return f"# Glossary\n\n{head}\n| word | meaning |\n|---|---|\n{rows}\n"
