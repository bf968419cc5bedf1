"""What pyproject.toml cannot say: compiled kernels in the wheel (see compile_kernels.py), and a README for an index."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
ASKED = os.environ.get(
    "RANKLOOP_PROCESSORS", ""
)  # for another machine, such as aarch64; "none" leaves them out

REPOSITORY = os.environ.get("GITHUB_REPOSITORY", "")  # OWNER/NAME, where the release workflow builds


def address(kind: str, path: str) -> str:
    """Where a file of the repository is: as a page (`blob`) or as it is (`raw`)."""
    return f"https://github.com/{REPOSITORY}/{kind}/{os.environ.get('GITHUB_REF_NAME', 'main')}/{path}"


def readme() -> str:
    """The README with the addresses that its pictures and links have outside of the repository, where it is known."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    if not REPOSITORY:
        return text
    return re.sub(
        r"(!?)(\[[^\]]*\])\((?!https?:|#)([^)\s]+)\)",
        lambda link: f"{link[1]}{link[2]}({address('raw' if link[1] else 'blob', link[3])})",
        text,
    )


class BuildWithKernels(build_py):
    """Compiles the kernels first, except into a checkout that is installed as it is (`make kernels` does it there)."""

    def run(self) -> None:
        """Compile, then copy what is in the package."""
        if not self.editable_mode and ASKED != "none" and sys.platform == "linux":
            processors = ["--processors", ASKED] if ASKED else []
            subprocess.run([sys.executable, "-m", "compile_kernels", *processors], cwd=ROOT, check=True)
        super().run()


class WheelForOnePlatform(bdist_wheel):
    """One wheel for all Pythons of a platform: the libraries know nothing of Python."""

    def get_tag(self) -> tuple[str, str, str]:
        """Python 3, no binary interface of Python, this platform."""
        _, _, platform = super().get_tag()
        return "py3", "none", platform


class WithLibraries(Distribution):
    """Has files for one platform, unless they were left out."""

    def has_ext_modules(self) -> bool:
        """Whether the wheel is for one platform."""
        return ASKED != "none" and sys.platform == "linux"


setup(
    distclass=WithLibraries,
    cmdclass={"build_py": BuildWithKernels, "bdist_wheel": WheelForOnePlatform},
    long_description=readme(),
    long_description_content_type="text/markdown",
    project_urls={"Repository": f"https://github.com/{REPOSITORY}"} if REPOSITORY else {},
)
