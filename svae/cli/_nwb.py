"""An NWB 2 file, written with h5py: the latents and states as time series, the bouts as a table of intervals.

Each object carries its type, its namespace and an id, as the format's schema asks; pynwb validates it in the tests.
"""

import datetime
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

VERSION = "2.8.0"


class Part(NamedTuple):
    """What is said of one discrete block; without a name where there are not several."""

    block: str | None
    found: Any  # the posterior
    bouts: list
    names: dict[int, str]


def write(file: Path, name: str, created: str, parts: list[Part]) -> None:
    """One session: the posterior of one recording. NWB asks for a start time: that of the run, as no other is known."""
    from svae.data.readers.optional import need

    h5py = need("h5py", "an NWB file")
    with h5py.File(file, "w") as target:
        text = h5py.string_dtype("utf-8")
        _root(target, name, _moment(created), text)
        module = target.create_group("processing/behavior")
        _typed(module, "ProcessingModule", {"description": "states and latents found by svae"})
        for i, part in enumerate(parts):
            _states(target, module, part, f"_{part.block}" if i else "", text)
        found = parts[0].found
        _series(module, "latent_mean", found.mean, found.time, "a.u.", "posterior mean of the latent")
        _series(module, "latent_sd", found.sd, found.time, "a.u.", "posterior standard deviation of the latent")
        _series(module, "reconstruction_error", found.error, found.time, "a.u.", "root mean square error of the frame")


def _states(target, module, part: Part, end: str, text) -> None:
    """The states of one block and their bouts; the names of all blocks but the first end with theirs."""
    found, of = part.found, f" of {part.block}" if part.block else ""
    _series(module, f"state{end}", found.state, found.time, "index", f"most probable state{of}")
    words = f"posterior probability of each state{of}"
    _series(module, f"state_probability{end}", found.probability, found.time, "1", words)
    _intervals(target.create_group(f"intervals/bouts{end}"), part.bouts, part.names, text)


def _moment(created):
    """ISO 8601 with a time zone, as the schema asks."""
    moment = datetime.datetime.strptime(created, "%Y-%m-%dT%H:%M:%S%z")
    return moment.isoformat()


def _typed(target, kind, attributes, namespace="core"):
    values = {"namespace": namespace, "neurodata_type": kind, "object_id": str(uuid.uuid4())} | attributes
    for key, value in values.items():
        target.attrs[key] = value


def _root(target, name, moment, text):
    _typed(target, "NWBFile", {"nwb_version": VERSION})
    for group in ("acquisition", "analysis", "general", "stimulus/presentation", "stimulus/templates"):
        target.create_group(group)
    words = "What a structured variational autoencoder says of one recording; the start time is that of the fit."
    values = {"identifier": str(uuid.uuid4()), "session_description": f"{name}. {words}"}
    values |= {"session_start_time": moment, "timestamps_reference_time": moment}
    for key, value in values.items():
        target.create_dataset(key, data=value, dtype=text)
    target.create_dataset("file_create_date", data=[moment], dtype=text)


def _series(module, name, values, time, unit, words):
    group = module.create_group(name)
    _typed(group, "TimeSeries", {"description": words, "comments": "no comments"})
    data = group.create_dataset("data", data=values)
    for key, value in {"unit": unit, "conversion": 1.0, "offset": 0.0, "resolution": -1.0}.items():
        data.attrs[key] = value
    stamps = group.create_dataset("timestamps", data=np.asarray(time, np.float64))
    stamps.attrs["interval"], stamps.attrs["unit"] = np.int32(1), "seconds"


def _intervals(group, bouts, names, text):
    _typed(group, "TimeIntervals", {"description": "stretches of one state"})
    table = {
        "start_time": (np.array([b.start for b in bouts]), "start of the bout in seconds"),
        "stop_time": (np.array([b.stop for b in bouts]), "end of the bout in seconds"),
        "state": (np.array([b.state for b in bouts], np.int64), "the state"),
        "state_name": ([names.get(b.state, f"state {b.state}") for b in bouts], "the name of the state"),
        "probability": (np.array([b.probability for b in bouts]), "mean probability of the state"),
    }
    group.attrs.create("colnames", list(table), dtype=text)
    numbers = group.create_dataset("id", data=np.arange(len(bouts)))
    _typed(numbers, "ElementIdentifiers", {}, "hdmf-common")
    for key, (values, words) in table.items():
        column = group.create_dataset(key, data=values, dtype=text if key == "state_name" else None)
        _typed(column, "VectorData", {"description": words}, "hdmf-common")
