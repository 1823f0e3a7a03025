"""The notebooks run from top to bottom, with few steps; what is kept of them was made by the whole."""

import os
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks need  pip install '.[test]'")
nbclient = pytest.importorskip("nbclient", reason="notebooks need  pip install '.[test]'")
ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


OFTEN = ("pinwheel", "pose-from-deeplabcut")  # the others with  pytest -m slow
RUN = [pytest.param(path, marks=() if path.stem in OFTEN else pytest.mark.slow) for path in NOTEBOOKS]


@pytest.mark.filterwarnings("default")  # those of the client are its own
@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("SVAE_SMALL", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_kept_has_its_pictures_and_nothing_of_a_machine(path):
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    drawing = [cell for cell in code if "plt.show()" in cell.source]
    assert drawing and all(any("image/png" in o.get("data", {}) for o in cell.outputs) for cell in drawing)
    assert not any(output.output_type == "error" for cell in code for output in cell.outputs)
    assert str(Path.home()) not in path.read_text(encoding="utf-8")
