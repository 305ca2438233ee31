"""Settings and fixtures of the whole suite."""

import tempfile
from pathlib import Path

import pytest
import servers
from hypothesis import HealthCheck, settings
from peer import other

from rumi import backends

# A fixture by import, so that whoever asks for it gets one process.
__all__ = ["other"]

# A loaded machine is no bug, so no example has a deadline; the tests that promise
# a time measure it themselves. The same examples on every run: whether a change is
# to blame for a failure must not be a matter of luck. `--hypothesis-profile explore`
# looks for new ones.
for name, repeatable in (("rumi", True), ("explore", False)):
    settings.register_profile(
        name,
        deadline=None,
        derandomize=repeatable,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
settings.load_profile("rumi")


# Where the tests of an installed package lie alone, those of its sources have nothing to test.
collect_ignore = (
    []
    if (Path(__file__).parents[1] / "setup.py").exists()
    else [
        "test_cli_formats.py",
        "test_formats.py",
        "test_inspector.py",
        "test_languages.py",
        "test_readme.py",
        "test_repo.py",
        "test_vectors.py",
    ]
)


def pytest_report_header():
    return f"no sources here, so left out: {', '.join(collect_ignore)}" if collect_ignore else None


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch):
    """Threads and backend are what a test says, not what the shell says."""
    monkeypatch.delenv("RUMI_NUM_THREADS", raising=False)
    monkeypatch.delenv("RUMI_BACKEND", raising=False)


@pytest.fixture(params=["openzl", "geozl"])
def backend(request, monkeypatch):
    """Each decoder in turn, chosen by RUMI_BACKEND."""
    if request.param == "geozl" and not backends.geozl_available():
        pytest.skip("geozl is not installed, so only one of two decoders is tested")
    monkeypatch.setenv("RUMI_BACKEND", request.param)
    return request.param


@pytest.fixture
def dask_client():
    """A Dask cluster of two processes, which gives up on what has killed two of them."""
    distributed = pytest.importorskip(
        "distributed", reason="dask.distributed is not installed, so no cluster is tested"
    )
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        # Whoever is given a client uses that one, not the one that Dask calls the default.
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def clean_environment(monkeypatch):
    """Settings of object stores are what a test says, not what the shell says."""
    servers.clean_environment(monkeypatch)


@pytest.fixture
def scratch(clean_environment, monkeypatch, tmp_path_factory):
    """Where temporary files go; nothing may be left there."""
    folder = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def s3(request):
    """A server of S3 that has the BUCKET of the module."""
    pytest.importorskip("moto.server", reason="moto is not installed, so there is no S3")
    with servers.Moto() as moto:
        moto.ask("PUT", f"/{request.module.BUCKET}")
        yield moto


@pytest.fixture
def needs_geozl():
    """Skip where geozl is absent."""
    if not backends.geozl_available():
        pytest.skip("geozl is not installed, so its files cannot be read")
