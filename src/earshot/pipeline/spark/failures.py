"""What Spark throws, as our own errors.

An error of ours raised inside a task comes back as text in a Python traceback inside a Java
exception; it is found there and raised again as what it was. Anything else becomes `SparkFailure`
(or, while a session starts, `SparkUnavailable`) with the cause in one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from earshot import errors
from earshot.errors import EarshotError, SparkFailure, SparkUnavailable, UsageError

_OURS = re.compile(r"^(?:.*?\b)?earshot\.errors\.(\w+): (.*)", re.MULTILINE | re.DOTALL)
_JAVA = re.compile(
    r"\n\s*(?:=== Streaming Query|at [\w.$]+\(|\.\.\. \d+ more|Caused by: |Driver stacktrace|JVM stacktrace|SQLSTATE)"
)
_PYTHON_ERROR = re.compile(r"^(\w[\w.]*(?:Error|Exception|Interrupt|Exit)(?:: .*)?)$", re.MULTILINE)
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] ")


@contextmanager
def named_errors(starting: str | None = None) -> Iterator[None]:
    """Raise anything that Spark throws in this context as one of our errors. `starting` names the cluster at
    which a session is being started."""
    try:
        yield
    except EarshotError:
        raise
    except Exception as error:
        named = named_error(error, starting)
        if named is None:
            raise
        raise named from None


def named_error(error: BaseException, starting: str | None = None) -> EarshotError | None:
    """Our error for one of Spark's; None for what is not Spark's."""
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
    from pyspark.errors import PySparkException

    if isinstance(error, Py4JNetworkError | ConnectionError):
        return SparkFailure("Spark's own process has ended; it may have run out of memory: set SPARK_DRIVER_MEMORY")
    if not isinstance(error, PySparkException | Py4JError) and type(error).__module__.partition(".")[0] != "grpc":
        return None
    text = str(error)
    if isinstance(error, Py4JJavaError):
        text = _causes(error.java_exception)
    if ours := _OURS.search(text):
        return _raised_again(ours[1], _without_java(ours[2]))
    if "OutOfMemoryError" in text:
        return SparkFailure("Spark ran out of memory; give it more with SPARK_DRIVER_MEMORY, as in 8g")
    if lacks_file_system(text):
        return SparkFailure(
            f"Spark has no file system for this address ({cause_line(text)}); give it the jar, as in "
            "--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION (docs: clusters)"
        )
    line = cause_line(text)
    if starting is not None:
        if "stopped SparkContext" in text:
            line = "the master does not answer; is the address right, and does the cluster run?"
        return SparkUnavailable(f"no Spark session at {starting}: {line}")
    return SparkFailure(f"a Spark job failed: {line}")


def lacks_file_system(text: str) -> bool:
    """Whether Spark says that it has no code for an address such as s3a://."""
    return bool(re.search(r"No FileSystem for scheme|ClassNotFoundException: Class [\w.]*FileSystem", text))


def _causes(exception: object) -> str:
    """The messages of a Java exception and its causes, without their stack traces."""
    texts: list[str] = []
    while exception is not None and len(texts) < 20:
        texts.append(str(exception.toString()))  # type: ignore[attr-defined]
        exception = exception.getCause()  # type: ignore[attr-defined]
    return "\n".join(texts)


def _without_java(text: str) -> str:
    return _JAVA.split(text)[0].strip()


def _raised_again(name: str, message: str) -> EarshotError:
    kind = getattr(errors, name, EarshotError)
    try:
        raised = kind(message)
    except TypeError:  # its constructor takes more than a message
        raised = UsageError(message) if issubclass(kind, UsageError) else EarshotError(message)
    assert isinstance(raised, EarshotError)
    return raised


def cause_line(text: str) -> str:
    """The line that says most: a Python error's last line, else an exception's, else the first."""
    if "Traceback (most recent call last)" in text and (found := _PYTHON_ERROR.findall(text)):
        return str(found[-1])
    lines = [line.strip() for line in _without_java(text).splitlines() if line.strip()]
    line = next((line for line in lines if line.startswith("Exception in ")), lines[0] if lines else "no reason given")
    line = re.sub(r'^Exception in thread "[^"]*" ', "", line)
    line = re.sub(r" SQLSTATE: \w+$", "", line)
    return _CONDITION.sub("", re.sub(r"^(?:[\w$]+\.)+([\w$]+): ", r"\1: ", line))
