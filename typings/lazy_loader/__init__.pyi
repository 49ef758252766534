"""The one function of lazy_loader that faces use; the package brings no types."""

from collections.abc import Callable

def attach_stub(package_name: str, filename: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Gives `__getattr__`, `__dir__` and `__all__` of the package whose stub lies beside `filename`."""
