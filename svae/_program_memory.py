"""Room for compiled programs: each holds memory maps, and a process that runs out of them is aborted (Linux)."""

from pathlib import Path

import jax

MAPS, MOST_MAPS = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")


def make_room() -> None:
    """Forgets every compiled program once half of the maps are taken; those needed again are compiled again."""
    try:
        with MAPS.open("rb") as file:
            crowded = sum(1 for _ in file) > int(MOST_MAPS.read_text()) // 2
    except (OSError, ValueError):
        return  # no such limit here
    if crowded:
        jax.clear_caches()
