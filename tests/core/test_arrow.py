"""Columns of pyarrow's are those that its own `array` makes, and pandas is not imported for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import run_python
from hyperslab.arrow import number_column, value_column

pa = pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
KINDS = {
    str: (st.text(max_size=5), "string"),
    bool: (st.booleans(), "bool"),
    int: (st.integers(-(2**63), 2**63 - 1), "int64"),
    float: (st.floats(allow_nan=False), "double"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_with_unknown_values(kind: type) -> None:
    values, name = KINDS[kind]

    @given(st.lists(st.none() | values, max_size=20))
    def check(drawn: list[Any]) -> None:
        made = value_column(drawn, kind)
        made.validate(full=True)
        assert str(made.type) == name
        assert made.to_pylist() == drawn
        assert made.null_count == drawn.count(None)

    check()


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8", "u8", "f8"])
def test_numbers(dtype: str) -> None:
    given = np.arange(40, dtype=dtype)[::3]
    made = number_column(given)
    made.validate(full=True)
    assert made.to_pylist() == given.tolist()


def test_pandas_is_not_imported() -> None:
    code = (
        "import sys\nimport numpy as np\nfrom hyperslab.arrow import number_column, value_column\n"
        "number_column(np.arange(4)), value_column(['a', None], str), value_column([True, None], bool)\n"
        "assert 'pyarrow' in sys.modules and 'pandas' not in sys.modules"
    )
    done = run_python(code, modules=("numpy",))
    assert done.returncode == 0, done.stderr.decode()
