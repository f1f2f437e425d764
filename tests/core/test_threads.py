import pytest
import torch

from parityscope.core.threads import single_threaded


def fail():
    raise RuntimeError(f"on {torch.get_num_threads()} thread")


def test_the_number_of_threads_comes_back_even_after_an_error():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(RuntimeError, match="on 1 thread"), single_threaded():
            fail()
        assert torch.get_num_threads() == 2
        with single_threaded(wanted=False):
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
