"""Views of datasets, which read elements as another dtype, text as `str`, or only some fields."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Shape: TypeAlias = tuple[int, ...] | None
Read: TypeAlias = Callable[[Any, Any], Any]  # `Dataset.read_as`


def first_length(shape: Shape) -> int:
    """The length of the first axis.

    Raises
    ------
    TypeError
        There is no axis.
    """
    if shape is None:
        raise TypeError("a dataset with a null dataspace has no length")
    if not shape:
        raise TypeError("Attempt to take len() of scalar dataset")
    return shape[0]


class _View:
    """A view of a dataset: it has the dataset's shape, and reads its elements in another way.

    Parameters
    ----------
    shape : tuple of int or None
        The shape of the dataset.
    read : Callable
        Reads an index of the dataset, as a dtype or as they are.
    """

    shape: Shape

    def __init__(self, shape: Shape, read: Read) -> None:
        self.shape, self._read = shape, read

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements that the view returns."""
        raise NotImplementedError

    def __len__(self) -> int:
        return first_length(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape or ())

    @property
    def size(self) -> int | None:
        """The number of elements."""
        return None if self.shape is None else math.prod(self.shape)

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
    shape, read
        As for every view.
    dtype : np.dtype
        The dtype to convert to.
    """

    def __init__(self, shape: Shape, read: Read, dtype: np.dtype[Any]) -> None:
        super().__init__(shape, read)
        self._dtype = dtype

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype to which elements are converted."""
        return self._dtype

    def __getitem__(self, args: Any) -> Any:
        return self._read(args, self._dtype)


class AsStrView(_View):
    """A view that decodes text to `str`.

    Parameters
    ----------
    shape, read
        As for every view.
    encoding : str
        The encoding of the text.
    errors : str
        What to do with bytes that are not in the encoding, as in `bytes.decode`.
    """

    def __init__(self, shape: Shape, read: Read, encoding: str, errors: str = "strict") -> None:
        super().__init__(shape, read)
        self.encoding = encoding
        self.errors = errors

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of objects, because the elements are `str`."""
        return np.dtype(object)

    def __getitem__(self, args: Any) -> Any:
        values = self._read(args, None)
        if np.isscalar(values):
            return values.decode(self.encoding, self.errors)  # type: ignore[union-attr]
        out = np.empty(values.shape, object)
        out.reshape(-1)[:] = [one.decode(self.encoding, self.errors) for one in values.flat]
        return out


class FieldsView(_View):
    """A view that reads only some fields of compound elements.

    Parameters
    ----------
    shape, read
        As for every view.
    prior_dtype : np.dtype
        The compound dtype, or the one to which elements are converted.
    names : str or sequence of str
        The name of one field, or several names.

    Raises
    ------
    ValueError
        The dtype has no fields, or no field of that name.
    """

    def __init__(self, shape: Shape, read: Read, prior_dtype: np.dtype[Any], names: Any) -> None:
        super().__init__(shape, read)
        self.extract_field: str | None = names if isinstance(names, str) else None
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
        field: np.dtype[Any] = self.read_dtype if self.extract_field is None else self.read_dtype[self.extract_field]
        return field

    def __getitem__(self, args: Any) -> Any:
        values = self._read(args, self.read_dtype)
        return values if self.extract_field is None else values[self.extract_field]
