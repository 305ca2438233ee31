"""The guard of the instruction counts, without valgrind: CI runs it with."""

import json

import pytest
from benchmarks import instructions

# One function of rumi calls two of others; each has costs of its own.
DUMP = """# callgrind format
version: 1
desc: Trigger: Client Request: 1 plan
positions: line
events: Ir
ob=/somewhere/rumi/_core/plan.cpython-311-x86_64-linux-gnu.so
fl=???
fn=plan
0 100
cob=/usr/lib/libc.so.6
cfn=malloc
calls=3 0
0 40
0 7
ob=/usr/lib/libc.so.6
fn=malloc
0 40
summary: 147
"""


def test_a_dump_is_added_up_by_library():
    assert instructions.spent(DUMP) == {"core": 107, "all": 147}


KEPT = {"plan": {"core": 1000, "all": 5000}, "parse": {"core": 10, "all": 10}}


@pytest.mark.parametrize(
    ("name", "core", "everything", "same_python", "said"),
    [
        ("plan", 1000, 5000, True, None),
        ("plan", 1220, 6770, True, None),
        ("plan", 500, 100, True, None),
        ("plan", 1221, 5000, True, "plan: core 1,221 is above 1,220"),
        ("plan", 1000, 6771, True, "plan: all 6,771 is above 6,770"),
        ("plan", 1000, 6771, False, None),
        # So few that a compiler may add half of them.
        ("parse", 32, 33, True, None),
        ("parse", 33, 10, True, "parse: core 33 is above 32"),
        ("new", 1, 1, True, "new: no number is kept"),
    ],
)
def test_what_is_too_many(name, core, everything, same_python, said):
    found = {**KEPT, name: {"core": core, "all": everything}}
    lines = instructions.too_many(found, KEPT, same_python=same_python)
    assert lines == ([said] if said else [])


def test_a_case_that_vanished_is_told():
    found = {"plan": KEPT["plan"]}
    said = instructions.too_many(found, KEPT, same_python=True)
    assert said == ["parse: not counted any more"]


def test_every_case_runs_and_has_a_kept_number():
    work = instructions.cases()
    for call in work.values():
        call()
    kept = json.loads(instructions.KEPT.read_text())
    for machine, numbers in kept.items():
        assert numbers["counts"].keys() == work.keys(), machine
        assert all(count["core"] <= count["all"] for count in numbers["counts"].values())
