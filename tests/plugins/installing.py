"""A package as a wheel, made by hand: a build backend may have to be fetched."""

import tomllib
import zipfile
from pathlib import Path


def wheel_of(package: Path) -> Path:
    """The wheel of a package that `earshot new protocol` wrote."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    info = f"{name}-{version}.dist-info"
    entries = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in table.items())
        for group, table in project["entry-points"].items()
    ]
    files = {path.relative_to(package / "src").as_posix(): path.read_text() for path in package.glob("src/*/*.py")}
    files |= {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "\n".join(entries),
    }
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    target = package / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
    return target
