"""The port to an embedder. `fabula.models` has adapters; the memory knows none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder(Protocol):
    """Turns texts into vectors whose dot product says how near their meanings are."""

    @property
    def id(self) -> str:
        """Names weights and precision; vectors of different ids are never compared."""

    @property
    def dim(self) -> int:
        """Numbers a vector. Known after `ready`."""

    async def ready(self) -> None:
        """Load, or ask an address, so that `id` and `dim` are known. The memory calls it once. Raises ModelError."""

    async def passages(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors (n, dim) of texts to be found, each of length 1. Raises ModelError."""

    async def queries(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors (n, dim) of questions, each of length 1. Raises ModelError."""
