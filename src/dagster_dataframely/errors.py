"""Every error of this package.

Each message is a sentence that says what was found, where, what is allowed and, where there is one,
the nearest name. All derive from `DataframelyError`, so one `except` catches them.
"""

from __future__ import annotations


class DataframelyError(Exception):
    """Base class of every error that this package raises."""


# --- found when an asset is declared ---------------------------------------------------------------


class InvalidSchemaError(DataframelyError):
    """What was given as a schema is not a subclass of `dataframely.Schema`."""


class InvalidSeverityError(DataframelyError):
    """A schema declares a severity that cannot be read."""


class InvalidSettingError(DataframelyError):
    """A setting has a value that is not allowed; the message names the value and its source."""


class InvalidFunctionError(DataframelyError):
    """A decorated function cannot become an asset: what it is, or what its annotations say."""


class CheckNameCollisionError(DataframelyError):
    """Two rules would report under one check name."""


class ReservedColumnError(DataframelyError):
    """A schema column begins with `dy_`, the prefix of rule columns and check names."""


class InvalidReferenceError(DataframelyError):
    """A `module.attribute` reference in YAML names nothing that can be used there."""


class ErrorRowsKeyCollisionError(DataframelyError):
    """Another asset already has the key of an asset's error-rows table."""


class ScaffoldError(DataframelyError):
    """A component cannot be scaffolded; nothing has been written."""


# --- found in a run --------------------------------------------------------------------------------


class InvalidReturnError(DataframelyError):
    """A function returned something that is neither a frame, `None`, nor a result around a frame."""


class LazyFrameError(DataframelyError):
    """The lazy frame that a function returned failed, and its error may quote redacted values."""


class ColumnSchemaError(DataframelyError):
    """The returned frame lacks a column of the schema, or has it with another dtype."""


class RuleEvaluationError(DataframelyError):
    """A rule could not be evaluated: its expression raised, or does not give booleans."""


class ValidationAbortError(DataframelyError):
    """Rows failed `error` rules, so nothing was written to the table."""


class NoValidRowsError(DataframelyError):
    """Every returned row failed an `error` rule, so the table was left as it was."""
