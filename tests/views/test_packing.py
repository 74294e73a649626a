"""What the page stores of attention, and how its data is kept out of the markup."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lab.views.packing import (
    QUANTISATION_ERROR,
    pack_rows,
    quantise,
    rounded,
    script_json,
    unpack_rows,
)


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(
        np.uint8,
        st.tuples(st.integers(0, 4), st.integers(0, 900)),
        elements=st.sampled_from([0, 0, 0, 0, 0, 0, 0, 1, 200, 255]),
    )
)
def test_packed_rows_come_back_as_they_were(rows):
    assert (unpack_rows(pack_rows(rows), *rows.shape) == rows).all()


@pytest.mark.parametrize("index", [0, 1, 254, 255, 256, 509, 510, 511, 2999])
def test_a_lone_token_comes_back_wherever_it_stands(index):
    rows = np.zeros((2, 3000), dtype=np.uint8)
    rows[1, index] = 7
    assert (unpack_rows(pack_rows(rows), 2, 3000) == rows).all()


def test_quantised_attention_is_off_by_no_more_than_stated():
    attention = np.random.default_rng(0).dirichlet(np.full(40, 0.1), size=500)
    restored = unpack_rows(pack_rows(quantise(attention)), 500, 40) / 255
    assert np.abs(restored - attention).max() <= QUANTISATION_ERROR + 1e-12


def test_rows_that_attend_nowhere_cost_two_bytes_each():
    assert len(pack_rows(np.zeros((270, 600), dtype=np.uint8))) == 540


def test_data_in_a_script_holds_no_markup_and_reads_back():
    hostile = {"</script><!--": ["<script>", "a & b", "line\u2028end\u2029", "\ud800"]}
    text = script_json(hostile)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text)["</script><!--"][:3] == hostile["</script><!--"][:3]


def test_numbers_that_json_lacks_become_null():
    value = {"a": float("nan"), "b": [np.float32("inf"), np.int8(3)], 1: (True, None)}
    assert json.loads(script_json(value)) == {"a": None, "b": [None, 3], "1": [True, None]}
    assert rounded([0.123456, np.nan]) == [0.1235, None]
