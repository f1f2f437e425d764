import ctypes

from parityscope.core import allocation


def test_thresholds_are_set_where_there_is_glibc(monkeypatch):
    calls = []

    class Library:
        def mallopt(self, name, value):
            calls.append((name, value))
            return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    assert allocation.keep_freed_memory()
    assert calls == [(-1, 2**30), (-3, 2**25)]  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of malloc.h


def test_other_c_libraries_are_left_as_they_are(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not allocation.keep_freed_memory()
