"""How fast this machine is: ceilings, chains, and a training step beside the same step written plainly."""

from svae.bench._bench import bench

__all__ = ["bench"]
