"""The binding of the numeric heart."""

import gala_tta


def test_a_spec_reads_back_in_one_spelling() -> None:
    assert gala_tta.canonical_spec('gala:window=20,x="a,b"') == 'gala:window=20,x="a,b"'
