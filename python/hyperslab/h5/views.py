"""Views of datasets, which read elements as another dtype, text as `str`, or only some fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hyperslab.h5.dataset import Dataset


class _View:
    """A view of a dataset."""

    def __init__(self, dset: Dataset) -> None:
        self._dset = dset

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements that the view returns."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._dset)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._dset.ndim

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The length of each axis."""
        return self._dset.shape

    @property
    def size(self) -> int | None:
        """The number of elements."""
        return self._dset.size

    def __getitem__(self, args: Any) -> Any:
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError(
                f"{type(self).__name__}.__array__ received {copy=} but memory allocation cannot be avoided on read"
            )
        return np.asarray(self[()], dtype=dtype or self.dtype)


class AsTypeView(_View):
    """A view that converts elements to another dtype.

    Parameters
    ----------
    dset : Dataset
        The dataset.
    dtype : np.dtype
        The dtype to convert to.
    """

    def __init__(self, dset: Dataset, dtype: np.dtype[Any]) -> None:
        super().__init__(dset)
        self._dtype = dtype

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype to which elements are converted."""
        return self._dtype

    def __getitem__(self, args: Any) -> Any:
        return self._dset.read_as(args, self._dtype)


class AsStrView(_View):
    """A view that decodes text to `str`.

    Parameters
    ----------
    dset : Dataset
        The dataset.
    encoding : str
        The encoding of the text.
    errors : str
        What to do with bytes that are not in the encoding, as in `bytes.decode`.
    """

    def __init__(self, dset: Dataset, encoding: str, errors: str = "strict") -> None:
        super().__init__(dset)
        self.encoding = encoding
        self.errors = errors

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of objects, because the elements are `str`."""
        return np.dtype(object)

    def __getitem__(self, args: Any) -> Any:
        found = self._dset[args]
        if np.isscalar(found):
            return found.decode(self.encoding, self.errors)  # type: ignore[union-attr]
        out = np.empty(found.shape, object)
        out.reshape(-1)[:] = [one.decode(self.encoding, self.errors) for one in found.flat]
        return out


class FieldsView(_View):
    """A view that reads only some fields of compound elements.

    Parameters
    ----------
    dset : Dataset
        The dataset.
    prior_dtype : np.dtype
        The compound dtype, or the one to which elements are converted.
    names : str or sequence of str
        The name of one field, or several names.

    Raises
    ------
    ValueError
        The dtype has no fields, or no field of that name.
    """

    def __init__(self, dset: Dataset, prior_dtype: np.dtype[Any], names: Any) -> None:
        super().__init__(dset)
        self.extract_field = names if isinstance(names, str) else None
        chosen = [names] if isinstance(names, str) else list(names)
        if prior_dtype.names is None:
            raise ValueError("Field names only allowed for compound types")
        for name in chosen:
            if name not in prior_dtype.names:
                raise ValueError(f"Field {name} does not appear in this type.")
        fields = [(name, prior_dtype.fields[name][0]) for name in chosen]  # type: ignore[index]
        self.read_dtype: np.dtype[Any] = np.dtype(fields)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the field, or a compound dtype of the fields."""
        found: np.dtype[Any] = self.read_dtype if self.extract_field is None else self.read_dtype[self.extract_field]
        return found

    def __getitem__(self, args: Any) -> Any:
        found = self._dset.read_as(args, self.read_dtype)
        return found if self.extract_field is None else found[self.extract_field]
