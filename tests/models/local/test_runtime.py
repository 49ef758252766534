from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from askance.errors import ConfigError
from askance.models.local.runtime import device_of, is_out_of_memory, is_slow, load_errors, shortage
from askance.models.settings import Local


def torch_with(*devices: str, bfloat16: bool = True) -> Any:
    """As much of torch as says which devices there are."""

    def zeros(_: int, *, device: str) -> None:
        if device.partition(":")[0] not in devices:
            msg = f"no {device}"
            raise RuntimeError(msg)

    return SimpleNamespace(
        zeros=zeros,
        cuda=SimpleNamespace(is_available=lambda: "cuda" in devices, is_bf16_supported=lambda: bfloat16),
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: "mps" in devices)),
    )


@pytest.mark.parametrize(
    ("devices", "local", "device"),
    [
        (("cpu",), Local(), "cpu"),
        (("cpu", "mps"), Local(), "mps"),
        (("cpu", "cuda"), Local(), "cuda"),
        (("cpu", "cuda"), Local(device="cuda:1", bits=4), "cuda:1"),
        (("cpu", "cuda"), Local(device="cpu", bits=8), "cpu"),
    ],
    ids=str,
)
def test_the_device(devices: tuple[str, ...], local: Local, device: str) -> None:
    assert device_of(torch_with(*devices), local, dtype="bfloat16", spec="hf:m") == device


REFUSED: dict[str, tuple[Any, Local, str]] = {
    "not there": (torch_with("cpu"), Local(device="cuda"), "The device 'cuda' cannot be used for 'hf:m': "),
    "wrong dtype": (torch_with("cuda", bfloat16=False), Local(), "The device 'cuda' does not compute in bfloat16."),
    "bits": (torch_with("mps"), Local(bits=8), "to 8 bits on CUDA devices and processors only, and this is 'mps'."),
}


@pytest.mark.parametrize(("torch", "local", "said"), REFUSED.values(), ids=REFUSED)
def test_devices_that_cannot_be_used(torch: Any, local: Local, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        device_of(torch, local, dtype="bfloat16", spec="hf:m")

    assert said in str(caught.value)


@pytest.mark.parametrize(("device", "dtype", "slow"), [("cpu", "bfloat16", True), ("cpu", "float16", False)])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_processor_without_arithmetic_in_16_bits(device: str, dtype: str, slow: bool, elsewhere: bool) -> None:
    """Nothing is said of another device, of 32 bits, and where torch does not know."""
    torch = SimpleNamespace(ops=SimpleNamespace(mkldnn=SimpleNamespace(_is_mkldnn_bf16_supported=lambda: False)))

    assert is_slow(torch, "mps" if elsewhere else device, dtype=dtype) == (slow and not elsewhere)
    assert not is_slow(torch, device, dtype="float32")


NO_ROOM = {
    "CUDA": ("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has", "2.5 GiB more were needed"),
    "CPU": ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 3145728 bytes.", "3.0 MiB more were"),
    "mapping": ("Cannot allocate memory (os error 12)", "there is no memory left"),
}


@pytest.mark.parametrize(("text", "said"), NO_ROOM.values(), ids=NO_ROOM)
def test_memory_that_does_not_suffice(text: str, said: str) -> None:
    error = RuntimeError(text)

    assert is_out_of_memory(error)
    assert shortage(error).startswith(said)
    assert shortage(error).endswith("are free on 'cpu'")
    with (
        pytest.raises(ConfigError, match=r"^The model 'hf:m' does not fit into memory: .*\. Quantize the"),
        load_errors("hf:m"),
    ):
        raise error


def test_other_faults_are_no_want_of_memory() -> None:
    assert not is_out_of_memory(RuntimeError("size mismatch"))
    assert is_out_of_memory(MemoryError())
